// One weft endpoint: a peer's address in the queue's address vector.
#pragma once

#include <optional>
#include <vector>

#include "common/cross_memory.hpp"
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
  [[nodiscard]] Submitted submit_small(const engine::message::Header& header, const iovec& bytes,
                                       std::int32_t& native_code) noexcept override {
    return port_->submit_small(header, bytes, peer_, native_code);
  }
  void disconnect_fabric() noexcept override;
  [[nodiscard]] bool can_pull() const noexcept override { return memory_ && memory_->reaches(); }
  [[nodiscard]] std::size_t offer(const engine::Piece& memory, std::span<std::byte> token) noexcept override {
    return engine::CrossMemory::offer(memory, token);
  }
  void withdraw_offers() noexcept override { memory_->withdraw(); }
  [[nodiscard]] Submitted pull(std::span<const std::byte> token, std::uint64_t offset, std::byte* to,
                               std::uint64_t length, std::int32_t& native_code) noexcept override {
    return memory_->pull(token, offset, to, length, native_code);
  }

  OfiQueue& queue_;
  Port* port_ = nullptr;  // from the blob on
  const Fabric& fabric_;
  const std::uint32_t message_size_;
  std::optional<engine::CrossMemory> memory_;  // where payload is offered
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::vector<std::byte> peer_address_;
};

}  // namespace weft::ofi
