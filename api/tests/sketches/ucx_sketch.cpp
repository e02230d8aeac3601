// Sketch: contexts and queues on UCP (see ucx_sketch.hpp).
#include "ucx_sketch.hpp"

#include <csignal>
#include <cstdlib>

#include "ucx_endpoint.hpp"

namespace weft::sketch::ucx {

namespace {

// The C callbacks: each finds its object and goes there. All run inside ucp_worker_progress, with our lock
// held.
template <unsigned id>
ucs_status_t on_message(void* queue, const void* header, size_t header_length, void* data, size_t length,
                        const ucp_am_recv_param_t* parameters) {
  Header copy;
  if (header_length != sizeof copy) return UCS_OK;  // not ours: dropped
  std::memcpy(&copy, header, sizeof copy);
  return static_cast<CompletionQueue*>(queue)->message(id, copy, data, length, *parameters);
}

class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

void set_handler(CompletionQueue& queue, unsigned id, ucp_am_recv_callback_t callback) {
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  handler.id = id;
  handler.cb = callback;
  handler.arg = &queue;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  if (const ucs_status_t code = ucp_worker_set_am_recv_handler(queue.worker, &handler); code != UCS_OK)
    refuse("ucp_worker_set_am_recv_handler", code);
}

}  // namespace

std::vector<FabricReport> Provider::probe(provider::Host& host) {
  std::vector<FabricReport> reports;
  for (const Lanes& lanes : lane_lists) {
    FabricReport& report = reports.emplace_back();
    report.name = lanes.name;
    report.priority = lanes.priority;
    report.trust = lanes.trust;
    try {
      struct Quiet final : provider::QueueEvents {
        void readable() noexcept override {}
      } quiet;
      Context context(host, lanes, {});
      const CompletionQueue queue(context, 1, quiet);
      report.usable = true;
    } catch (const Error& error) {
      report.reason = error.what();
    }
  }
  return reports;
}

std::unique_ptr<provider::Context> Provider::open(provider::Host& host, const provider::OpenRequest& request,
                                                  std::unique_ptr<provider::Context>) {
  const auto* found =
      std::ranges::find_if(lane_lists, [&](const Lanes& one) { return request.beneath == one.name; });
  if (found == lane_lists.end())
    throw Error(Status::not_found,
                "UCX lanes '" + std::string(request.beneath) + "' are not known; rc, shm, tcp are");
  return std::make_unique<Context>(host, *found, request);
}

Context::Context(provider::Host& services, const Lanes& which, const provider::OpenRequest& request)
    : host(services), events(request.events), lanes(which) {
  // Shared memory offers peer error handling only when told to by the environment (ucp_config_modify takes
  // these names and does nothing, 1.13); without it there is no lane at all. Not over what the user set.
  for (const char* name : {"UCX_POSIX_ERROR_HANDLING", "UCX_SYSV_ERROR_HANDLING"})
    if (std::string_view(lanes.name) == "shm") static_cast<void>(setenv(name, "y", 0));
  const SignalsBlocked
      blocked;  // UCX's thread inherits the mask: no signal of the program's ends there (ERR-6)
  ucp_config_t* config = nullptr;
  if (const ucs_status_t code = ucp_config_read(nullptr, nullptr, &config); code != UCS_OK)
    refuse("ucp_config_read", code);
  static_cast<void>(ucp_config_modify(config, "TLS", lanes.transports));
  if (!request.device.empty()) {  // the interface that has the address, or is named
    const std::string device(request.device);
    static_cast<void>(ucp_config_modify(config, "NET_DEVICES", device.c_str()));
  }
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  // No RMA and no AMO: on these lanes the target would not check (MEM-4).
  parameters.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  parameters.mt_workers_shared = 1;
  const ucs_status_t code = ucp_init(&parameters, config, &native);
  ucp_config_release(config);
  if (code != UCS_OK) throw Error(Status::unavailable, std::string("ucp_init: ") + ucs_status_string(code));
  attributes_.provider = "ucx";
  attributes_.provider_version = ucp_get_version_string();
  attributes_.fabric = lanes.name;
  attributes_.trust = lanes.trust;
  attributes_.thread_mode = request.thread_mode;
  attributes_.segment_size = frame_size;
  attributes_.atomic_scope = AtomicScope::device_and_cpu;  // the engine's
  attributes_.deviations.push_back({"MEM-7", "UCX hides its descriptors", "the peer is told by the core"});
}

Context::~Context() {
  if (!in_child) ucp_cleanup(native);
}

std::unique_ptr<provider::CompletionQueue> Context::create_completion_queue(
    std::uint32_t capacity, provider::QueueEvents& queue_events) {
  return std::make_unique<CompletionQueue>(*this, capacity, queue_events);
}
std::unique_ptr<provider::ReceiveQueue> Context::create_receive_queue(provider::CompletionQueue& queue,
                                                                      std::uint32_t depth,
                                                                      std::uint64_t user_value) {
  return std::make_unique<engine::SharedReceives>(static_cast<CompletionQueue&>(queue).entries, depth,
                                                  user_value);
}
std::unique_ptr<provider::MemoryRegion> Context::register_memory(const RegistrationRequest& request) {
  return std::make_unique<Region>(host, request);
}
std::unique_ptr<provider::Endpoint> Context::prepare_endpoint(const provider::EndpointRequest& request) {
  return std::make_unique<Endpoint>(*this, request);
}

Context::Clock::time_point Context::service(Clock::time_point now) noexcept {
  if (in_child) return Clock::time_point::max();
  const std::lock_guard guard(lock);
  bool soon = false;
  for (CompletionQueue* queue : queues) {
    queue->drive();
    for (auto& [cookie, endpoint] : queue->by_cookie) {
      endpoint->tend();
      soon |= endpoint->holds_back();
    }
    // Whoever progressed a worker that a sleeper had armed arms it again (its program sleeps in epoll).
    static_cast<void>(ucp_worker_arm(queue->worker));
    std::erase_if(queue->unclaimed, [&](const auto& one) {
      if (now - one.second < std::chrono::seconds(10)) return false;
      close_by_force(one.first);
      return true;
    });
  }
  return now + std::chrono::milliseconds(soon ? 10 : 50);
}

CompletionQueue::CompletionQueue(Context& context, std::uint32_t capacity, provider::QueueEvents& events)
    : owner(context), entries(capacity, events) {
  const SignalsBlocked blocked;
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (const ucs_status_t code = ucp_worker_create(owner.native, &parameters, &worker); code != UCS_OK)
    refuse("ucp_worker_create", code);
  set_handler(*this, frame_message, on_message<frame_message>);
  set_handler(*this, payload_message, on_message<payload_message>);
  set_handler(*this, want_message, on_message<want_message>);
  const std::lock_guard guard(owner.lock);
  owner.queues.push_back(this);
}

CompletionQueue::~CompletionQueue() {
  const std::lock_guard guard(owner.lock);
  std::erase(owner.queues, this);
  if (owner.in_child) return;
  if (listener != nullptr) ucp_listener_destroy(listener);
  for (const auto& [endpoint, since] : unclaimed) close_by_force(endpoint);
  ucp_worker_destroy(worker);
}

void CompletionQueue::listen(const sockaddr* address, std::size_t length) {
  if (listener != nullptr) return;
  ucp_listener_params_t parameters{};
  parameters.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  parameters.sockaddr = {address, static_cast<socklen_t>(length)};
  parameters.conn_handler.cb = [](ucp_conn_request_h request, void* queue) {
    static_cast<CompletionQueue*>(queue)->connected(request);
  };
  parameters.conn_handler.arg = this;
  if (const ucs_status_t code = ucp_listener_create(worker, &parameters, &listener); code != UCS_OK)
    refuse("ucp_listener_create", code);
}

std::uint16_t CompletionQueue::listening_port() const {
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  if (ucp_listener_query(listener, &attributes) != UCS_OK) return 0;
  return reinterpret_cast<const sockaddr_in*>(&attributes.sockaddr)->sin_port;  // same place in both families
}

// A connection of UCX's own, not yet known to be for anybody: its first frame will tell.
void CompletionQueue::connected(ucp_conn_request_h request) noexcept {
  ucp_ep_h endpoint = nullptr;
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  parameters.conn_request = request;
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  if (unclaimed.size() >= 1024)
    static_cast<void>(ucp_listener_reject(listener, request));
  else if (ucp_ep_create(worker, &parameters, &endpoint) == UCS_OK)
    unclaimed.emplace_back(endpoint, std::chrono::steady_clock::now());
}

// What the transport does with a packet: who is it for, then the engine. A stranger's is dropped.
ucs_status_t CompletionQueue::message(unsigned id, const Header& header, void* data, std::size_t length,
                                      const ucp_am_recv_param_t& parameters) noexcept {
  const auto found = by_cookie.find(header.cookie);
  if (found == by_cookie.end()) return UCS_OK;
  const bool deferred = (parameters.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  if ((parameters.recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0) {
    const auto fresh =
        std::ranges::find(unclaimed, parameters.reply_ep, [](const auto& one) { return one.first; });
    if (fresh != unclaimed.end()) {
      found->second->claim(fresh->first);
      unclaimed.erase(fresh);
    }
  }
  switch (id) {
    case frame_message:
      if (deferred) return UCS_ERR_INVALID_PARAM;  // frames are small
      return found->second->frame(header.number, {static_cast<const std::byte*>(data), length});
    case payload_message:
      return found->second->payload(header.number, data, length, deferred);
    default:
      found->second->wanted(header.number);
      return UCS_OK;
  }
}

void CompletionQueue::drive() noexcept {
  while (ucp_worker_progress(worker) != 0) {
  }
}

std::size_t CompletionQueue::poll(Completion* out, std::size_t room) noexcept {
  const std::lock_guard guard(owner.lock);
  if (owner.in_child) return 0;
  drive();
  for (CompletionQueue* other : driven) other->drive();
  return entries.take(out, room);
}

int CompletionQueue::descriptor() {
  int descriptor = -1;
  if (const ucs_status_t code = ucp_worker_get_efd(worker, &descriptor); code != UCS_OK)
    refuse("ucp_worker_get_efd", code);
  return descriptor;
}

bool CompletionQueue::arm() noexcept {
  const std::lock_guard guard(owner.lock);
  // UCS_ERR_BUSY: there is something; progress, look again.
  while (ucp_worker_arm(worker) == UCS_ERR_BUSY) drive();
  return entries.arm();
}

}  // namespace weft::sketch::ucx
