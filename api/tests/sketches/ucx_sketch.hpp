// Sketch: the provider interface on UCP, for tcp and shared memory, where the engine does the work, and with
// the listener that hardware lanes need to wire up. Compiled against the real headers, never run; it shows
// where each call goes and each rule is met.
#pragma once

#include <netinet/in.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "engine_sketch.hpp"

namespace weft::sketch::ucx {

// Lane lists that prove what an endpoint uses: before 1.14 it cannot be asked.
struct Lanes {
  const char* name;
  const char* transports;  // UCX_TLS
  bool by_listener;        // wire-up by worker address hangs on RoCE: a listener and its connection manager
  int priority;
  Trust trust;
};
inline constexpr std::array lane_lists{
    Lanes{"tcp", "tcp,self", false, 15,
          Trust::whoever_reaches_the_port},  // UCX's port writes where a stranger says
    Lanes{"shm", "posix,sysv,cma,self", false, 40, Trust::same_user},
    Lanes{"rc", "rc_verbs,self", true, 60, Trust::connected_peers},
};
inline constexpr std::size_t frame_size = 8 * 1024;
inline constexpr std::size_t frames_per_endpoint = 16;
inline constexpr std::size_t reorder_depth = 64;  // active messages come out of order; more is a broken peer
inline constexpr unsigned frame_message = 1, payload_message = 2, want_message = 3;  // ids of active messages

// In front of every active message: for whom, and which.
struct Header {
  std::uint64_t cookie = 0;
  std::uint64_t number = 0;  // frame: sequence; payload and want: the pull
};

class CompletionQueue;
class Endpoint;

// SEL-3: lanes count when a worker could be made with them.
class Provider final : public provider::Provider {
 public:
  std::vector<FabricReport> probe(provider::Host& host) override;
  std::vector<provider::Variable> variables() const override { return {}; }
  bool is_decorator() const noexcept override { return false; }
  std::unique_ptr<provider::Context> open(provider::Host& host, const provider::OpenRequest& request,
                                          std::unique_ptr<provider::Context> inner) override;
};

// MEM-7: UCX hides its descriptors (a permitted deviation); the core tells peers of the parent's death.
class Context final : public provider::Context {
 public:
  Context(provider::Host& host, const Lanes& lanes, const provider::OpenRequest& request);
  ~Context() override;
  const Attributes& attributes() const noexcept override { return attributes_; }
  std::vector<Counter> counters() const override { return {{"frames", frames}}; }
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
  int service_descriptor() noexcept override {
    return -1;
  }  // a real one: epoll over the workers' descriptors
  void enter_child() noexcept override { in_child = true; }

  std::mutex lock;  // stands for the hand-over in mode `single`: workers are SERIALIZED, never SINGLE
  provider::Host& host;
  provider::ContextEvents* events;
  const Lanes& lanes;
  ucp_context_h native = nullptr;
  std::vector<CompletionQueue*> queues;
  std::uint64_t frames = 0;
  bool in_child = false;

 private:
  Attributes attributes_;
};

// One worker per queue, so that an armed queue is quiet while others are busy (PRG-4). An endpoint lives on
// its receive side's worker; its send side's queue drives that worker too (PRG-1) and is woken by whoever
// progressed.
class CompletionQueue final : public provider::CompletionQueue {
 public:
  CompletionQueue(Context& owner, std::uint32_t capacity, provider::QueueEvents& events);
  ~CompletionQueue() override;
  std::size_t poll(Completion* out, std::size_t room) noexcept override;
  int descriptor() override;
  bool arm() noexcept override;

  void drive() noexcept;
  void connected(ucp_conn_request_h request) noexcept;
  ucs_status_t message(unsigned id, const Header& header, void* data, std::size_t length,
                       const ucp_am_recv_param_t& parameters) noexcept;
  void listen(const sockaddr* address, std::size_t length);
  std::uint16_t listening_port() const;

  Context& owner;
  engine::Queue entries;
  ucp_worker_h worker = nullptr;
  ucp_listener_h listener = nullptr;
  std::map<std::uint64_t, Endpoint*> by_cookie;  // a real provider: an array, the cookie holds the index
  std::vector<CompletionQueue*> driven;          // workers of endpoints whose send side reports here
  std::vector<std::pair<ucp_ep_h, std::chrono::steady_clock::time_point>>
      unclaimed;  // bounded, timed out (SEC-1)
};

// Host memory as it is: on these lanes the engine moves every byte, so UCX need not register it. (Hardware
// lanes: ucp_mem_map and ucp_rkey_pack, only for regions that grant all rights, since UCX grants all of them:
// MEM-1.)
class Region final : public engine::Region {
 public:
  using engine::Region::Region;

 private:
  void release() noexcept override {}
};

class Endpoint final : public engine::Endpoint {
 public:
  Endpoint(Context& owner, const provider::EndpointRequest& request);
  ~Endpoint() override;
  std::vector<std::byte> blob(const provider::PathAddresses& path) override;
  bool establish(const provider::PeerParameters& peer) override;
  void rung() noexcept override {}  // UCX wakes sleepers itself, on shared memory too

  ucs_status_t frame(std::uint64_t number, std::span<const std::byte> bytes) noexcept;
  ucs_status_t payload(std::uint64_t number, void* data, std::size_t length, bool deferred) noexcept;
  void wanted(std::uint64_t number) noexcept;
  void claim(ucp_ep_h endpoint) noexcept;  // the acceptor's side of a listener's connection
  void tend() noexcept;

 private:
  struct Slot {
    Header header;
    std::array<std::byte, frame_size> bytes;
    Endpoint* endpoint = nullptr;
    bool busy = false;
  };
  struct Held {
    std::uint64_t number = ~0ull;
    std::vector<std::byte> bytes;  // a real provider: slots of frame_size made at prepare
  };
  std::ptrdiff_t transmit(const iovec* pieces, int count) noexcept override;
  bool pull(const engine::Pull& pull) noexcept override;
  void announce(engine::Region&, std::uint64_t, engine::Pull&) noexcept override {}
  void detach() noexcept override;
  void connect(ucp_ep_params_t parameters);
  void prove_path() noexcept;
  bool started(ucs_status_ptr_t request, const char* call) noexcept;

  Context& owner_;
  CompletionQueue& home_;  // whose worker it lives on
  ucp_ep_h endpoint_ = nullptr;
  std::uint64_t cookie_ = 0, peer_cookie_ = 0;
  std::uint64_t sent_ = 0, expected_ = 0;
  std::vector<Slot> slots_;
  std::array<Held, reorder_depth> held_;
  std::map<std::uint64_t, engine::Pull> pulls_;
  std::uint32_t outside_ = 0;  // requests in UCX's hands that touch memory
  bool initiator_ = false, established_called_ = false, ready_ = false, closing_ = false;
};

}  // namespace weft::sketch::ucx
