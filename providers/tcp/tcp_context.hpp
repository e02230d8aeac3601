// A TCP context: the engine over sockets, each of which is the connection of the handshake.
#pragma once

#include "common/descriptor_context.hpp"

namespace weft::tcp {

class TcpContext final : public engine::DescriptorContext {
 public:
  TcpContext(provider::Host& host, const provider::OpenRequest& request);

  [[nodiscard]] const Attributes& attributes() const noexcept override { return attributes_; }
  [[nodiscard]] bool keeps_connection() const noexcept override { return true; }
  [[nodiscard]] ProtocolRange protocol() const noexcept override {
    return {engine::wire::version, engine::wire::version};
  }
  [[nodiscard]] PlainReceive plain_receive() const noexcept override { return &receive_plainly; }
  [[nodiscard]] std::unique_ptr<provider::Endpoint> prepare_endpoint(
      const provider::EndpointRequest& request) override;

 private:
  static std::ptrdiff_t receive_plainly(int descriptor, std::byte* place, std::size_t length) noexcept;

  Attributes attributes_;
};

}  // namespace weft::tcp
