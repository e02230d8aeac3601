// One weft endpoint: a peer's address in the queue's address vector.
#pragma once

#include <vector>

#include "common/message_endpoint.hpp"
#include "queue.hpp"

namespace weft::ofi {

class OfiEndpoint final : public engine::MessageEndpoint {
 public:
  OfiEndpoint(OfiContext& context, OfiQueue& queue, const provider::EndpointRequest& request);

 private:
  [[nodiscard]] std::vector<std::byte> fabric_blob(const provider::PathAddresses& path) override;
  bool connect_fabric(std::span<const std::byte> blob, const provider::PeerParameters& peer) override;
  [[nodiscard]] Submitted submit(engine::SendBuffer& buffer, std::int32_t& native_code) noexcept override {
    return port_->submit(buffer, peer_, native_code);
  }
  void disconnect_fabric() noexcept override;

  OfiQueue& queue_;
  Port* port_ = nullptr;  // from the blob on
  const Fabric& fabric_;
  const std::uint32_t message_size_;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::vector<std::byte> peer_address_;
};

}  // namespace weft::ofi
