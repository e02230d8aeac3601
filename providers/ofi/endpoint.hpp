// One weft endpoint: a peer's address in the queue's address vector.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "common/cross_memory.hpp"
#include "common/message_endpoint.hpp"
#include "queue.hpp"

namespace weft::ofi {

class OfiEndpoint final : public engine::MessageEndpoint, private PullEvents {
 public:
  OfiEndpoint(OfiContext& context, OfiQueue& queue, const provider::EndpointRequest& request);
  ~OfiEndpoint() override;

  // ---- for the queue's helper, with the gate held
  [[nodiscard]] const Port& port() const noexcept { return *port_; }
  // Null: there are no means for one.
  void adopt(std::unique_ptr<PullPort> port) noexcept;

 private:
  // What has become of the pull port.
  enum class Pulls : std::uint8_t { never, not_yet, wanted, ready, failed };

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
  [[nodiscard]] bool can_pull() const noexcept override {
    return memory_ && memory_->reaches();  // a pull port tells when it is there
  }
  [[nodiscard]] std::size_t offer(const engine::Piece& memory, std::span<std::byte> token) noexcept override;
  void offers_taken(std::uint64_t count) noexcept override {
    if (pull_port_) pull_port_->taken(count);
  }
  void withdraw_offers() noexcept override {
    if (memory_) memory_->withdraw();
    stop_pull();
  }
  void stop_pull() noexcept override;
  [[nodiscard]] Submitted pull(std::uint64_t number, std::span<const std::byte> token, std::uint64_t offset,
                               std::byte* to, std::uint64_t length,
                               std::int32_t& native_code) noexcept override;
  void large_payload_passes() noexcept override {
    if (pulls_ == Pulls::not_yet) want_pull_port();
  }
  // PullEvents.
  void on_fetched(std::uint64_t number, std::uint64_t length) noexcept override {
    queue_.pulled(*this, number, length);
  }
  void on_fetch_failed(std::int32_t code) noexcept override;
  void want_pull_port() noexcept;

  OfiContext& context_;
  OfiQueue& queue_;
  Port* port_ = nullptr;  // from the blob on
  const Fabric& fabric_;
  const std::uint32_t message_size_;
  std::optional<engine::CrossMemory> memory_;  // where payload is fetched across processes
  std::unique_ptr<PullPort> pull_port_;        // where it is fetched by reads of the fabric
  Pulls pulls_ = Pulls::never;
  std::uint32_t peer_scope_ = 0;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::vector<std::byte> peer_address_;
};

}  // namespace weft::ofi
