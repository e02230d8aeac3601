// An open "device": here there is only one, this host.
#pragma once

#include <optional>

#include "weft/engine/descriptor_context.hpp"

namespace unix_provider {

inline constexpr const char* name = "unix";
inline constexpr const char* version = "0.1.0";
inline constexpr const char* buffer_variable = "WEFT_UNIX_BUFFER";

class UnixContext final : public weft::engine::DescriptorContext {
 public:
  UnixContext(weft::provider::Host& host, const weft::provider::OpenRequest& request);

  [[nodiscard]] const weft::Attributes& attributes() const noexcept override { return attributes_; }
  // The handshake's TCP connection is not needed once both ends have met.
  [[nodiscard]] bool keeps_connection() const noexcept override { return false; }
  [[nodiscard]] ProtocolRange protocol() const noexcept override { return {1, 1}; }
  [[nodiscard]] std::unique_ptr<weft::provider::Endpoint> prepare_endpoint(
      const weft::provider::EndpointRequest& request) override;

  // Bytes a socket holds on their way out, when the user chose.
  [[nodiscard]] std::optional<int> buffer() const noexcept { return buffer_; }

 private:
  weft::Attributes attributes_;
  std::optional<int> buffer_;
};

}  // namespace unix_provider
