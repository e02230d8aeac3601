// A completion queue with its UCX worker: what its endpoints send and receive goes through it.
#pragma once

#include <sys/types.h>
#include <ucp/api/ucp.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "common/message_queue.hpp"
#include "listener.hpp"
#include "path.hpp"

namespace weft::ucx {

class UcxContext;

class UcxQueue final : public engine::MessageQueue {
 public:
  UcxQueue(UcxContext& context, std::uint32_t capacity, provider::QueueEvents& events);
  ~UcxQueue() override;

  // ---- for endpoints
  // The address of the worker, for the peer. Throws Error.
  [[nodiscard]] std::vector<std::byte> worker_address() const;
  // Joins the path to this worker; with the gate held. When it is not ready yet, UcxEndpoint::path_ready() or
  // path_lost() follows. Throws Error: unreachable, protocol.
  Path& join_path(std::span<const std::byte> address, UcxEndpoint& endpoint, bool unwoken);
  // The same where one of the two connects to the other's listener, at this address; `connects`: this side
  // does.
  Path& join_listener(const MeetingPlace& place, const sockaddr_in6& address, bool connects,
                      UcxEndpoint& endpoint);
  // What a peer needs for that.
  [[nodiscard]] MeetingPlace meeting_place() const noexcept { return {number_, listener_->port()}; }
  [[nodiscard]] bool has_visitors() const noexcept { return listener_->has_visitors(); }
  [[nodiscard]] std::size_t path_count() const noexcept { return paths_.size(); }
  void leave_path(Path& path, UcxEndpoint& endpoint) noexcept;
  // UCX took the message, and will tell of its buffer.
  [[nodiscard]] ucs_status_ptr_t send(Path& path, engine::SendBuffer& buffer) noexcept;
  // UCX took the message whole within the call, or answers UCS_ERR_NO_RESOURCE.
  [[nodiscard]] static ucs_status_t send_small(const Path& path, const engine::message::Header& header,
                                               const iovec& bytes) noexcept;

 protected:
  bool progress() noexcept override;
  [[nodiscard]] bool arm_fabric() noexcept override;

 private:
  static ucs_status_t on_message(void* queue, const void* header, std::size_t header_length, void* data,
                                 std::size_t length, const ucp_am_recv_param_t* parameters) noexcept;
  static void on_sent(void* request, ucs_status_t status, void* buffer) noexcept;
  static void on_ready(void* request, ucs_status_t status, void* path) noexcept;
  static void on_failure(void* path, ucp_ep_h endpoint, ucs_status_t status) noexcept;

  Path& make_path(std::span<const std::byte> address, bool unwoken);
  Path& make_listener_path(const MeetingPlace& place, const sockaddr_in6& address, bool connects);
  Path& joined(Path& path, UcxEndpoint& endpoint);
  // Makes the path's endpoint; UCX tells `path` of its failure.
  [[nodiscard]] ucs_status_t make_endpoint(Path& path, ucp_ep_params_t& parameters) noexcept;
  void admit(Path& path, ucp_conn_request_h visitor) noexcept;
  void admit_visitors() noexcept;
  [[nodiscard]] bool split(Path& path, ucp_conn_request_h visitor) noexcept;
  void look_after_awaited() noexcept;
  // The path waits for its peer once more, since who came was not the one.
  [[nodiscard]] bool waits_on(Path& path) noexcept;
  [[nodiscard]] bool wires_up_unwoken() const noexcept;
  void await_peer(Path& path) noexcept;
  void close_path(Path& path) noexcept;
  void drop_broken_paths() noexcept;
  void drop_deserted_paths() noexcept;
  void bound_deserted_paths() noexcept;

  UcxContext& context_;
  const pid_t owner_;           // in a forked child UCX is left alone
  const std::uint64_t number_;  // of the worker, with a listener: random; otherwise 0
  ucp_worker_h worker_ = nullptr;
  std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<Path>> paths_;
  std::uint32_t deserted_ = 0;      // paths with messages under way that nobody waits for
  std::uint32_t awaited_ = 0;       // paths whose peer has not connected yet
  const bool tells_of_room_;        // UCX's descriptor, too
  std::uint32_t in_ucx_hands_ = 0;  // messages
  unsigned refusals_ = 0;           // to sleep since a message got room
  bool any_unwoken_ = false;
  bool any_broken_ = false;
  bool ending_ = false;
  bool unclosable_ = false;  // UCX would wait for ever
};

}  // namespace weft::ucx
