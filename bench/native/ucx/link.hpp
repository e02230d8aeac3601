// A pair of bare UCX workers as a careful user of UCP would set them up: active messages and one-sided
// operations, in the error mode that tells of dead peers, spinning.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace perf::ucx {

[[noreturn]] void throw_ucx_error(const char* call, ucs_status_t code);

/// What lies beneath. `rc` is RDMA through `rc_verbs`, connected through rdma_cm.
enum class Lanes { tcp, shm, rc };

class Link {
 public:
  explicit Link(Lanes lanes);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  virtual ~Link();

  [[nodiscard]] const std::string& transports() const { return transports_; }
  /// The worker's address; on rc that of its listener, which this makes.
  [[nodiscard]] std::vector<std::byte> worker_address();
  /// Both sides do it, each with the other's address; on rc only the one that was told an address.
  void connect(std::span<const std::byte> address);
  [[nodiscard]] bool is_visited() const { return lanes_ == Lanes::rc; }
  /// Then the other side waits for it.
  void admit_visitor();

  void progress() { ucp_worker_progress(worker_); }

  /// Sends an active message; returns at once. The bytes stay as they are until outstanding() says so.
  void send(const void* bytes, std::size_t length) {
    ucp_request_param_t parameters = counted();
    track(ucp_am_send_nbx(peer_, message_id, nullptr, 0, bytes, length, &parameters), "ucp_am_send_nbx");
  }
  void put(const void* bytes, std::size_t length, std::uint64_t to, ucp_rkey_h key) {
    ucp_request_param_t parameters = counted();
    track(ucp_put_nbx(peer_, bytes, length, to, key, &parameters), "ucp_put_nbx");
  }
  void get(void* bytes, std::size_t length, std::uint64_t from, ucp_rkey_h key) {
    ucp_request_param_t parameters = counted();
    track(ucp_get_nbx(peer_, bytes, length, from, key, &parameters), "ucp_get_nbx");
  }
  /// Done when all puts before it have reached the peer's memory, and all gets this side's.
  void flush() {
    ucp_request_param_t parameters = counted();
    parameters.cb.send = &on_flushed;
    const ucs_status_ptr_t request = ucp_ep_flush_nbx(peer_, &parameters);
    if (request == nullptr) ++flushed_;
    track(request, "ucp_ep_flush_nbx");
  }
  /// How many flushes are done.
  [[nodiscard]] std::uint64_t flushed() const { return flushed_; }

  /// Operations started and not yet finished.
  [[nodiscard]] std::uint64_t outstanding() const { return outstanding_; }
  void wait_for_all() {
    while (outstanding_ != 0) progress();
  }

  [[nodiscard]] ucp_context_h context() const { return context_; }
  [[nodiscard]] ucp_ep_h peer() const { return peer_; }

 protected:
  /// A whole message; called from progress().
  virtual void on_message(const std::byte* bytes, std::size_t length) = 0;
  /// Where a large message is to go; called from progress(). on_message() follows.
  virtual std::byte* place_for(std::size_t length) = 0;

 private:
  static constexpr unsigned message_id = 1;

  [[nodiscard]] ucp_request_param_t counted() {
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.cb.send = &on_done;
    parameters.user_data = this;
    return parameters;
  }
  void track(ucs_status_ptr_t request, const char* call) {
    if (request == nullptr) return;
    if (UCS_PTR_IS_ERR(request)) throw_ucx_error(call, UCS_PTR_STATUS(request));
    ++outstanding_;
  }
  static void on_done(void* request, ucs_status_t status, void* self);
  static void on_flushed(void* request, ucs_status_t status, void* self);
  static void on_fetched(void* request, ucs_status_t status, std::size_t length, void* self);
  static void on_visitor(ucp_conn_request_h visitor, void* self);
  void make_peer(ucp_ep_params_t& parameters);
  static void on_failure(void* self, ucp_ep_h endpoint, ucs_status_t status);
  static ucs_status_t on_arrival(void* self, const void* header, std::size_t header_length, void* data,
                                 std::size_t length, const ucp_am_recv_param_t* parameters);

  Lanes lanes_;
  std::string transports_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h peer_ = nullptr;
  ucp_listener_h listener_ = nullptr;
  ucp_conn_request_h visitor_ = nullptr;
  std::uint64_t outstanding_ = 0;
  std::uint64_t flushed_ = 0;
  // Large messages on their way, in a ring: more than a workload lets be outstanding.
  struct Fetch {
    Link* link = nullptr;
    std::byte* place = nullptr;
  };
  std::array<Fetch, 1024> fetches_{};
  std::size_t next_fetch_ = 0;
};

/// Registered memory of this side.
class Memory {
 public:
  Memory(const Link& link, std::span<std::byte> bytes);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();
  /// Its address and key, for the peer.
  [[nodiscard]] std::vector<std::byte> description() const;

 private:
  ucp_context_h context_;
  std::span<std::byte> bytes_;
  ucp_mem_h handle_ = nullptr;
};

/// Registered memory of the peer.
class RemoteMemory {
 public:
  RemoteMemory(const Link& link, std::span<const std::byte> description);
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;
  ~RemoteMemory() { ucp_rkey_destroy(key_); }
  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] ucp_rkey_h key() const { return key_; }

 private:
  std::uint64_t address_ = 0;
  ucp_rkey_h key_ = nullptr;
};

/// Bytes as text and back: an address travels to the client as one.
[[nodiscard]] std::string to_text(std::span<const std::byte> bytes);
[[nodiscard]] std::vector<std::byte> from_text(const std::string& text);

}  // namespace perf::ucx
