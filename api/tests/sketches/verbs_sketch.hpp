// Sketch: the provider interface on verbs reliable connections. Compiled against the real headers, never run;
// it shows where each call goes and where each contract rule is met.
#pragma once

#include <infiniband/verbs.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "weft/provider/context.hpp"
#include "weft/provider/provider.hpp"

namespace weft::sketch::verbs {

inline constexpr std::uint32_t segments_per_request = 4;  // OPS-7
inline constexpr std::uint32_t chain_length = 32;         // work requests per doorbell
inline constexpr int poll_batch = 16;
// The side, in the top bit of wr_id: after an error the fabric's own opcode is not valid (CMP-5).
inline constexpr std::uint64_t receive_mark = 1ull << 63;

template <auto function>
struct Release {
  template <class Object>
  void operator()(Object* object) const noexcept {
    static_cast<void>(function(object));
  }
};
using DeviceHandle = std::unique_ptr<ibv_context, Release<ibv_close_device>>;
using DomainHandle = std::unique_ptr<ibv_pd, Release<ibv_dealloc_pd>>;
using ChannelHandle = std::unique_ptr<ibv_comp_channel, Release<ibv_destroy_comp_channel>>;
using QueueHandle = std::unique_ptr<ibv_cq, Release<ibv_destroy_cq>>;
struct ReleaseThreadDomain {  // the header has it as a static function, which a template argument must not be
  void operator()(ibv_td* domain) const noexcept { static_cast<void>(ibv_dealloc_td(domain)); }
};
using ThreadDomainHandle = std::unique_ptr<ibv_td, ReleaseThreadDomain>;
using PairHandle = std::unique_ptr<ibv_qp, Release<ibv_destroy_qp>>;
using SharedHandle = std::unique_ptr<ibv_srq, Release<ibv_destroy_srq>>;
using RegionHandle = std::unique_ptr<ibv_mr, Release<ibv_dereg_mr>>;

class CompletionQueue;
class Endpoint;
class MemoryRegion;
class ReceiveQueue;

// What a peer needs to reach a queue pair. Both sides have the same byte order: the core sees to it.
struct Blob {
  std::uint32_t pair_number, first_packet;
  std::array<std::byte, 16> gid;
  std::uint16_t lid;
  std::uint8_t mtu, gid_is_needed;
  std::uint32_t reads_as_initiator, reads_as_responder;
  std::uint64_t flush_address;  // eight readable bytes of this library, for the peer's `flush` (OPS-11)
  std::uint32_t flush_key, reserved;
};
static_assert(std::is_trivially_copyable_v<Blob>);

// What an exported key carries beside range and rights (MEM-3).
struct Key {
  std::uint64_t address, length;
  std::uint32_t native, access;
  std::uint64_t checksum;  // altered bytes are refused on import; a forgery the hardware refuses
};

// One accepted operation: completions are filled from here (CMP-5), never from the fabric's entry.
struct SendRecord {
  std::uint64_t context = 0, length = 0, moved = 0;  // `moved`: bytes already handed over (split transfers)
  std::uint64_t remote_address = 0, operand = 0, compare = 0;
  std::array<ibv_sge, segments_per_request> segments{};
  std::array<std::uint64_t, segments_per_request> regions{};  // tokens, for `busy` (MEM-5)
  std::uint32_t segment_count = 0, remote_key = 0, immediate = 0, reads = 0;
  std::uint64_t last_serial = 0;  // of its last work request
  Operation operation = Operation::send;
  Flags flags = Flags::none;
};
struct ReceiveRecord {
  std::uint64_t context = 0, bytes = 0;
  std::array<std::uint64_t, segments_per_request> regions{};
  std::uint32_t immediate = 0;
  Status status = Status::cancelled;
  bool has_immediate = false, in_use = false;
};

std::uint64_t next_token() noexcept;  // never 0, never reused within the process
bool key_is_sound(const Key& key);
bool gid_matches(const ibv_gid& gid, std::span<const std::byte> address);

// Providers and devices: SEL-3 (probe opens devices), SEC-3 (32-bit keys: connected peers are trusted).
class Provider final : public provider::Provider {
 public:
  std::vector<FabricReport> probe(provider::Host& host) override;
  std::vector<provider::Variable> variables() const override;
  bool is_decorator() const noexcept override { return false; }
  std::unique_ptr<provider::Context> open(provider::Host& host, const provider::OpenRequest& request,
                                          std::unique_ptr<provider::Context> inner) override;
};

// One device and port. One lock stands for the finer ones of a real provider; in mode `single` it is the
// hand-over with the helper thread (THR-2), the thread domain takes the driver's own locks away.
class Context final : public provider::Context {
 public:
  Context(provider::Host& host, DeviceHandle device, std::uint8_t port, const provider::OpenRequest& request);
  ~Context() override;

  const Attributes& attributes() const noexcept override { return attributes_; }
  std::vector<Counter> counters() const override { return {{"doorbells", doorbells}, {"signals", signals}}; }
  bool keeps_connection() const noexcept override { return false; }
  ProtocolRange protocol() const noexcept override { return {1, 1}; }
  std::unique_ptr<provider::CompletionQueue> create_completion_queue(std::uint32_t capacity,
                                                                     provider::QueueEvents& events) override;
  std::unique_ptr<provider::ReceiveQueue> create_receive_queue(provider::CompletionQueue& queue,
                                                               std::uint32_t depth,
                                                               std::uint64_t user_value) override;
  std::unique_ptr<provider::MemoryRegion> register_memory(const RegistrationRequest& request) override;
  std::unique_ptr<provider::Endpoint> prepare_endpoint(const provider::EndpointRequest& request) override;
  Clock::time_point service(Clock::time_point now) noexcept override;
  int service_descriptor() noexcept override { return device->async_fd; }
  void enter_child() noexcept override;

  // The entry of the GID table that has this address (CON-8: both sides agree on one path).
  int gid_index(std::span<const std::byte> local_address, ibv_gid& gid) const;

  std::mutex lock;
  provider::Host& host;
  provider::ContextEvents* events;
  DeviceHandle device;
  DomainHandle domain;
  ThreadDomainHandle threads;
  DomainHandle parent;  // `domain` without the driver's locks (THR-2), where the device has it
  ibv_device_attr limits{};
  ibv_port_attr port_state{};
  std::uint8_t port;
  std::chrono::milliseconds peer_timeout;
  std::array<std::uint64_t, 2> scratch{};  // [0]: readable by peers' flush; [1]: where ours lands
  RegionHandle scratch_region;
  std::unordered_map<std::uint64_t, MemoryRegion*> regions;  // a real provider: array and generation
  std::unordered_map<std::uint32_t, Endpoint*> by_pair_number;
  std::vector<CompletionQueue*> queues;
  std::uint64_t doorbells = 0, signals = 0;
  bool in_child = false;

 private:
  void read_asynchronous_events() noexcept;
  Attributes attributes_;
  bool idle_ = true;  // service() is not due soon; the first post asks for it

 public:
  void work_begins() noexcept {
    if (std::exchange(idle_, false) && events != nullptr) events->request_service();
  }
};

// CMP-6: `reserved` counts signalled operations and receives. The hardware queues beneath have room for every
// flushed request too, so they cannot overrun; more are added when one is full (max_cqe).
class CompletionQueue final : public provider::CompletionQueue {
 public:
  CompletionQueue(Context& owner, std::uint32_t capacity, provider::QueueEvents& events);
  ~CompletionQueue() override;
  std::size_t poll(Completion* out, std::size_t room) noexcept override;
  int descriptor() override { return channel_->fd; }
  bool arm() noexcept override;

  ibv_cq* attach(Endpoint* endpoint, std::uint32_t entries);
  void detach(Endpoint* endpoint, ibv_cq* queue, std::uint32_t entries) noexcept;
  bool reserve(std::uint32_t entries) noexcept;
  void give_back() noexcept { --reserved_; }
  const std::vector<ReceiveQueue*>& shared_queues() const noexcept { return shared_; }
  // For what is not the fabric's news: connect, endpoint_ended, low_water, entries that service() read.
  void make_readable() noexcept;
  bool has_entries() const noexcept;
  void drive() noexcept;  // PRG-1

 private:
  friend class ReceiveQueue;
  struct Hardware {
    QueueHandle queue;
    std::uint32_t capacity = 0, used = 0;
  };
  Context& owner_;
  std::uint32_t capacity_, reserved_ = 0;
  ChannelHandle channel_;
  provider::QueueEvents& events_;
  bool armed_ = false;
  std::vector<Hardware> hardware_;
  std::vector<Endpoint*> endpoints_;
  std::vector<ReceiveQueue*> shared_;
  std::size_t next_ = 0;  // round robin: no endpoint starves another (PRG-1)
};

// RCQ-1 on a shared receive queue of the hardware. A receive belongs to the endpoint whose completion names
// it.
class ReceiveQueue final : public provider::ReceiveQueue {
 public:
  ReceiveQueue(Context& owner, CompletionQueue& queue, std::uint32_t depth, std::uint64_t user_value);
  ~ReceiveQueue() override;
  PostResult post(const ReceiveRequest* requests, std::size_t count) noexcept override;
  void set_low_water(std::uint32_t mark) noexcept override;

  ReceiveRecord take(std::uint64_t slot) noexcept;  // frees the slot, notes a crossing of the mark (RCQ-2)
  bool take_report(Completion& out) noexcept;
  bool has_report() const noexcept { return crossed_; }
  bool uses(std::uint64_t token) const noexcept;
  ibv_srq* native() const noexcept { return shared_.get(); }
  CompletionQueue& queue() const noexcept { return queue_; }

 private:
  Context& owner_;
  CompletionQueue& queue_;
  std::uint64_t user_value_;
  std::vector<ReceiveRecord> slots_;
  std::vector<std::uint32_t> free_;
  std::uint32_t mark_ = 0;
  bool crossed_ = false;
  SharedHandle shared_;
};

// MEM-1: what was asked for, plus LOCAL_WRITE where the fabric demands it (our own check keeps receives out).
class MemoryRegion final : public provider::MemoryRegion {
 public:
  MemoryRegion(Context& owner, const RegistrationRequest& request);
  ~MemoryRegion() override = default;
  std::uint64_t token() const noexcept override { return token_; }
  std::span<const std::byte> key() const noexcept override { return std::as_bytes(std::span{&key_, 1}); }
  AtomicScope atomic_scope() const noexcept override;
  Status deregister() noexcept override;
  void collect_users(std::vector<std::uint32_t>& endpoint_ids) override;
  // A posted receive cannot be taken back from an SRQ; once the region is gone it fails with a protection
  // error.
  void cancel_shared_receives() noexcept override {}

  // MEM-2: a piece of the region as the fabric wants it; false when it does not lie inside.
  bool place(const Segment& segment, Access wanted, ibv_sge& out) const noexcept;

 private:
  Context& owner_;
  std::uint64_t token_, base_, length_;
  Access access_;
  Key key_{};
  RegionHandle region_;
};

// MEM-2 for a receive: fills the record and the work request, or tells why not.
Status place_receive(Context& owner, const ReceiveRequest& request, ReceiveRecord& record,
                     std::array<ibv_sge, segments_per_request>& places, ibv_recv_wr& work) noexcept;

// One queue pair. Records: taken_ <= done_ <= handed_ <= accepted_. What the hardware has no room for (reads
// beyond its limit, pieces of long transfers) waits between handed_ and accepted_. Work requests have serial
// numbers of their own, which are their wr_id: one completion confirms all before it (CMP-2, CMP-4).
class Endpoint final : public provider::Endpoint {
 public:
  Endpoint(Context& owner, const provider::EndpointRequest& request);
  ~Endpoint() override;
  std::vector<std::byte> blob(const provider::PathAddresses& path) override;
  Limits limits() const noexcept override { return limits_; }
  bool establish(const provider::PeerParameters& peer) override;
  void go_up() noexcept override;
  bool withdraw_connect_report() noexcept override;
  PostResult post(const WorkRequest* requests, std::size_t count) noexcept override;
  PostResult post_receives(const ReceiveRequest* requests, std::size_t count) noexcept override;
  Imported import_key(std::span<const std::byte> key) override;
  void release_key(std::uint64_t token) noexcept override;
  void drain() noexcept override;
  void end(const provider::EndOrder& order) noexcept override;
  void rung() noexcept override {}  // the device wakes by itself
  void silence() noexcept override;

  void absorb(const ibv_wc& entry) noexcept;  // one entry of the hardware queue
  std::size_t take(CompletionQueue& queue, Completion* out, std::size_t room) noexcept;
  bool ready(const CompletionQueue& queue) const noexcept;
  bool tend(Context::Clock::time_point now) noexcept;  // from service(); true: call again soon
  bool uses(std::uint64_t token) const noexcept;
  std::uint32_t id() const noexcept { return request_.id; }
  void post_tail() noexcept;  // a signalled empty write of ours: confirms what is before it
  void lost(Status cause, std::int32_t code, std::string_view text) noexcept;

 private:
  Status check(const WorkRequest& request, SendRecord& record) noexcept;
  void push() noexcept;
  bool build(ibv_send_wr& work, ibv_sge* segments) noexcept;  // false: no room in the hardware now
  void change_state(ibv_qp_state state, ibv_qp_attr attributes, int mask);
  void start_ending(const provider::EndOrder& order) noexcept;
  void finish() noexcept;
  Completion blank(Operation operation, Status status) const noexcept;
  SendRecord& sent(std::uint64_t sequence) noexcept { return sends_[sequence % sends_.size()]; }
  void notify() noexcept;

  Context& owner_;
  provider::EndpointRequest request_;
  Limits limits_;
  CompletionQueue* send_queue_;
  CompletionQueue* receive_queue_;
  ReceiveQueue* shared_;
  ibv_cq* send_hardware_ = nullptr;
  ibv_cq* receive_hardware_ = nullptr;
  PairHandle pair_;
  std::uint32_t number_ = 0, first_packet_ = 0, hardware_inline_ = 0, hardware_depth_, signal_every_;
  ibv_gid gid_{};
  int gid_index_ = 0;
  Blob peer_{};
  std::map<std::uint64_t, Key> imported_;
  std::vector<SendRecord> sends_;
  std::vector<std::byte> inline_bytes_;  // a copy per slot: the caller may overwrite his at once (OPS-6)
  RegionHandle inline_region_;
  std::uint64_t accepted_ = 0, handed_ = 0, done_ = 0, taken_ = 0;
  std::uint64_t serial_ = 0, confirmed_ = 0, tail_serial_ = 0;
  std::uint32_t unsignalled_run_ = 0, reads_in_flight_ = 0;
  std::deque<ReceiveRecord> receives_;  // a real provider: a ring of receive_depth
  std::size_t receives_done_ = 0;       // of receives_, from the front
  std::uint64_t messages_sent_ = 0, messages_received_ = 0;
  std::optional<std::uint64_t> faulty_send_;
  Status fault_ = Status::ok, cause_ = Status::ok;
  std::int32_t native_code_ = 0;
  std::optional<provider::EndOrder> waiting_;
  Context::Clock::time_point last_traffic_{}, end_since_{};
  bool up_ = false, was_up_ = false, connect_report_ = false, draining_ = false, failed_ = false,
       ending_ = false, ended_ = false, ended_report_ = false, silent_ = false;
};

}  // namespace weft::sketch::verbs
