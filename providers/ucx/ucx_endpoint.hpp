// An endpoint over UCX: the engine's stream of frames, cut into active messages.
#pragma once

#include <string_view>

#include "common/message_endpoint.hpp"
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

 protected:
  [[nodiscard]] std::vector<std::byte> fabric_blob(const provider::PathAddresses& path) override;
  bool connect_fabric(std::span<const std::byte> blob, const provider::PeerParameters& peer) override;
  [[nodiscard]] Submitted submit(engine::SendBuffer& buffer, std::int32_t& native_code) noexcept override;
  [[nodiscard]] Submitted submit_small(const engine::message::Header& header, const iovec& bytes,
                                       std::int32_t& native_code) noexcept override;
  void disconnect_fabric() noexcept override;

 private:
  bool connect_to_listener(std::span<const std::byte> blob, const provider::PeerParameters& peer);

  UcxQueue& queue_;
  const RdmaDevice& rdma_;
  const bool by_listener_;
  const bool shared_memory_;  // is among the lanes
  const bool same_host_only_;
  Path* path_ = nullptr;
};

}  // namespace weft::ucx
