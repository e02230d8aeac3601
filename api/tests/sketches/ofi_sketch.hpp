// Sketch: the provider interface on libfabric's reliable datagram endpoints, for tcp and shm, where the
// engine does the work. Compiled against the real headers, never run; it shows where each call goes and each
// rule is met.
#pragma once

#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "engine_sketch.hpp"

namespace weft::sketch::ofi {

// What is particular to a fabric, in one place.
struct Fabric {
  const char* name;      // what follows the colon in WEFT_PROVIDER
  const char* provider;  // as libfabric names it
  bool has_descriptor;   // shm refuses FI_WAIT_FD: sleepers are rung over the core's connection
  bool has_socket_addresses;
  int priority;
  Trust trust;
};
inline constexpr std::array fabrics{
    Fabric{"tcp", "tcp;ofi_rxm", true, true, 20, Trust::whoever_reaches_the_port},
    Fabric{"shm", "shm", false, false, 30, Trust::same_user},
};
inline constexpr std::size_t frame_size = 16 * 1024;
inline constexpr std::size_t frames_per_endpoint = 16;  // each way
inline constexpr std::size_t read_batch = 16;

struct Close {
  template <class Object>
  void operator()(Object* object) const noexcept {
    static_cast<void>(fi_close(&object->fid));
  }
};
template <class Object>
using Handle = std::unique_ptr<Object, Close>;
struct FreeInfo {
  void operator()(fi_info* info) const noexcept { fi_freeinfo(info); }
};
using InfoHandle = std::unique_ptr<fi_info, FreeInfo>;

class CompletionQueue;
class Endpoint;

// One request of ours in the fabric's hands: context memory for FI_CONTEXT, a frame, who it belongs to. Error
// entries are looked up here and in the engine's records, never taken from the entry (CMP-5).
struct Slot {
  fi_context2 context{};  // first: the fabric hands back its address
  enum class Kind : std::uint8_t { receive, send, pull } kind = Kind::receive;
  bool busy = false;
  Endpoint* endpoint = nullptr;
  std::uint64_t pull_id = 0;
  std::byte* frame = nullptr;
};

// SEL-3: an offer counts once a domain could be opened.
class Provider final : public provider::Provider {
 public:
  std::vector<FabricReport> probe(provider::Host& host) override;
  std::vector<provider::Variable> variables() const override { return {}; }
  bool is_decorator() const noexcept override { return false; }
  std::unique_ptr<provider::Context> open(provider::Host& host, const provider::OpenRequest& request,
                                          std::unique_ptr<provider::Context> inner) override;
};

// One domain with one address vector. PRG-1, PRG-2: service() progresses for an absent program. MEM-7:
// libfabric hides its descriptors, so a child keeps the parent's connections up (a permitted deviation); the
// core's own connection tells of the parent's death.
class Context final : public provider::Context {
 public:
  Context(provider::Host& host, const Fabric& fabric, InfoHandle info, const provider::OpenRequest& request);
  const Attributes& attributes() const noexcept override { return attributes_; }
  std::vector<Counter> counters() const override { return {{"frames", frames}, {"rings", rings}}; }
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
  int service_descriptor() noexcept override { return -1; }  // a real one: epoll over the queues' descriptors
  void enter_child() noexcept override { in_child = true; }

  std::mutex lock;  // stands for the hand-over in mode `single`, where the domain is FI_THREAD_DOMAIN
  provider::Host& host;
  provider::ContextEvents* events;
  const Fabric& fabric;
  InfoHandle info;
  Handle<fid_fabric> fabric_handle;
  Handle<fid_domain> domain;
  Handle<fid_av> addresses;
  std::vector<CompletionQueue*> queues;
  std::uint64_t frames = 0, rings = 0;
  bool in_child = false;

 private:
  Attributes attributes_;
};

// PRG-4: FI_WAIT_FD with fi_trywait; without it -1, and QueueEvents::readable after a ring.
class CompletionQueue final : public provider::CompletionQueue {
 public:
  CompletionQueue(Context& owner, std::uint32_t capacity, provider::QueueEvents& events);
  ~CompletionQueue() override;
  std::size_t poll(Completion* out, std::size_t room) noexcept override;
  int descriptor() override { return descriptor_; }
  bool arm() noexcept override;

  void drive() noexcept;
  engine::Queue& entries() noexcept { return entries_; }
  fid_cq* native() const noexcept { return queue_.get(); }
  void attach(Endpoint* endpoint) { endpoints_.push_back(endpoint); }
  void detach(Endpoint* endpoint) noexcept { std::erase(endpoints_, endpoint); }
  const std::vector<Endpoint*>& endpoints() const noexcept { return endpoints_; }

 private:
  void read_error() noexcept;
  Context& owner_;
  engine::Queue entries_;
  Handle<fid_cq> queue_;
  int descriptor_ = -1;
  std::vector<Endpoint*> endpoints_;
};

// The engine checks every access; this registration only serves pulls: into local memory, and by the peer's
// engine out of it (MEM-4: nobody but the peer named in the announcement is told the native key).
class Region final : public engine::Region {
 public:
  Region(Context& owner, const RegistrationRequest& request);
  fid_mr* native() const noexcept { return native_.get(); }
  std::uint64_t remote_address(std::uint64_t offset) const noexcept {
    return address_keys_ ? reinterpret_cast<std::uintptr_t>(base_) + offset : offset;
  }

 private:
  void release() noexcept override { native_.reset(); }
  std::byte* base_;
  bool address_keys_;
  Handle<fid_mr> native_;
};

// One RDM endpoint per weft endpoint: a fault travels to no other (ERR-2), and closing it takes user memory
// back.
class Endpoint final : public engine::Endpoint {
 public:
  Endpoint(Context& owner, const provider::EndpointRequest& request);
  ~Endpoint() override;
  std::vector<std::byte> blob(const provider::PathAddresses& path) override;
  bool establish(const provider::PeerParameters& peer) override;
  void rung() noexcept override;

  void finished(Slot& slot, std::size_t length, std::uint64_t tag, int error) noexcept;
  void tend() noexcept;
  bool tell_asleep() noexcept;
  bool connecting() const noexcept { return !ready_ && !detached_; }

 private:
  std::ptrdiff_t transmit(const iovec* pieces, int count) noexcept override;
  bool pull(const engine::Pull& pull) noexcept override;
  void announce(engine::Region& region, std::uint64_t offset, engine::Pull& description) noexcept override;
  void detach() noexcept override;
  void post_receive(Slot& slot) noexcept;
  Slot* free_slot(Slot::Kind kind) noexcept;
  bool send(Slot& slot, std::size_t length, std::uint64_t control) noexcept;

  Context& owner_;
  CompletionQueue& send_queue_;
  CompletionQueue& receive_queue_;
  Handle<fid_ep> endpoint_;
  Handle<fid_mr> frame_registration_;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::uint64_t cookie_ = 0, peer_cookie_ = 0;  // in every tag: a stranger's messages are dropped (SEC-1)
  std::uint64_t frames_sent_ = 0, frames_arrived_ = 0;
  std::vector<std::byte> frames_;
  std::vector<Slot> slots_;
  bool hello_due_ = false, ready_ = false, peer_asleep_ = false, detached_ = false;
};

}  // namespace weft::sketch::ofi
