// An endpoint over UCX: the engine's stream of frames, cut into active messages.
#pragma once

#include <memory>
#include <string_view>

#include "common/message_endpoint.hpp"
#include "native_way.hpp"
#include "path.hpp"
#include "rdma_device.hpp"

namespace weft::ucx {

class UcxContext;
class UcxQueue;

class UcxEndpoint final : public engine::MessageEndpoint {
 public:
  UcxEndpoint(UcxContext& context, UcxQueue& queue, const provider::EndpointRequest& request);
  ~UcxEndpoint() override;

  // ---- for the queue, with the gate held
  void path_ready() noexcept { events().established(); }
  // Up for the program, whatever UCX says.
  [[nodiscard]] bool is_up() const noexcept { return moving(); }
  void change_path(Path& path) noexcept { path_ = &path; }
  // The path this endpoint is on broke.
  void path_lost(ucs_status_t status) noexcept;
  // What became of native writes.
  void native_ready(bool ready) noexcept { natives_ready(ready); }
  void native_arrived(std::uint64_t bytes) noexcept { natives_done(bytes); }
  void native_lost(ucs_status_t status) noexcept;
  [[nodiscard]] NativeWay* native_way() noexcept { return native_.get(); }

 protected:
  [[nodiscard]] std::vector<std::byte> fabric_blob(const provider::PathAddresses& path) override;
  bool connect_fabric(std::span<const std::byte> blob, const provider::PeerParameters& peer) override;
  [[nodiscard]] Submitted submit(engine::SendBuffer& buffer, std::int32_t& native_code) noexcept override;
  [[nodiscard]] Submitted submit_small(const engine::message::Header& header, const iovec& bytes,
                                       std::int32_t& native_code) noexcept override;
  void disconnect_fabric() noexcept override;
  [[nodiscard]] bool can_write_natively() const noexcept override { return native_ != nullptr; }
  [[nodiscard]] std::size_t lend(const engine::RegionEntry& region,
                                 std::span<std::byte> key) noexcept override;
  [[nodiscard]] bool borrow(std::uint32_t slot, std::span<const std::byte> key) noexcept override;
  void give_up_key(std::uint32_t slot) noexcept override;
  std::ptrdiff_t write_natively(std::uint32_t slot, std::uint64_t offset, const std::byte* from,
                                std::uint64_t length) noexcept override;
  void await_natives() noexcept override;
  void cut_natives() noexcept override;
  void stop_natives() noexcept override;

 private:
  bool connect_to_listener(std::span<const std::byte> blob, const provider::PeerParameters& peer);

  UcxQueue& queue_;
  const RdmaDevice& rdma_;
  const bool by_listener_;
  const bool shared_memory_;  // is among the lanes
  const bool same_host_only_;
  Path* path_ = nullptr;
  std::unique_ptr<NativeWay> native_;  // null: never
};

}  // namespace weft::ucx
