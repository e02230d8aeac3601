#include "context.hpp"

#include <algorithm>
#include <string>

#include "endpoint.hpp"
#include "queue.hpp"
#include "region.hpp"
#include "shared_receives.hpp"

namespace weft::verbs {

namespace {

constexpr std::uint32_t most_depth = 65'536;
constexpr std::uint32_t own_requests = 4;
constexpr std::uint32_t most_inline = 512;
constexpr std::uint32_t most_reads = 128;

std::uint32_t reads(int device) noexcept {
  return std::clamp(static_cast<std::uint32_t>(std::max(device, 1)), std::uint32_t{1}, most_reads);
}

void fill_limits(const Port& port, Limits& limits) {
  // One completion queue has to hold what both sides of a pair can have outstanding.
  const auto entries = static_cast<std::uint32_t>(std::max(port.limits.max_cqe, 2));
  const auto requests = std::min(static_cast<std::uint32_t>(std::max(port.limits.max_qp_wr, 1)), entries / 2);
  limits.max_message = port.state.max_msg_sz;
  limits.max_transfer = std::uint64_t{1} << 40;
  limits.max_inline = most_inline;
  limits.max_segments = segments_per_request;
  limits.send_depth = std::min(most_depth, requests > own_requests ? requests - own_requests : 1);
  limits.receive_depth = std::min(most_depth, requests);
  limits.max_outstanding_reads = reads(port.limits.max_qp_init_rd_atom);
  limits.unexpected_bytes = 0;
}

std::vector<Deviation> deviations() {
  constexpr auto reason =
      "the device checks 32-bit keys of its own, which can be guessed and come back after a while "
      "(InfiniBand "
      "Architecture Specification, 10.6)";
  return {
      {"MEM-4", reason,
       "a stale or forged key that happens to name another live region of the target reaches that region, "
       "within its range and rights"},
      {"SEC-2", reason, "guessing needs a connection that the program accepted"}};
}

Attributes make_attributes(const Port& port, const provider::OpenRequest& request) {
  Attributes attributes;
  attributes.provider = "verbs";
  attributes.provider_version = "0.1.0";
  attributes.fabric = port.ethernet() ? "RoCE" : "InfiniBand";
  attributes.segment_size = std::uint64_t{128} << port.state.active_mtu;
  attributes.thread_mode = request.thread_mode;
  attributes.progress_mode = request.progress_mode;
  attributes.trust = Trust::connected_peers;
  attributes.trust_text =
      "Nothing is encrypted or authenticated on the wire. A connected peer can guess the device's 32-bit "
      "keys, "
      "and who can inject packets into the fabric can forge those of a connection.";
  attributes.atomic_scope =
      port.limits.atomic_cap == IBV_ATOMIC_GLOB ? AtomicScope::device_and_cpu : AtomicScope::device;
  fill_limits(port, attributes.limits);
  attributes.max_key_size = Key::size;
  attributes.deviations = deviations();
  return attributes;
}

}  // namespace

Context::Context(provider::Host& host, Port port, const provider::OpenRequest& request,
                 const FabricOptions& options)
    : host_(host),
      events_(request.events),
      attributes_(make_attributes(port, request)),
      fabric_(host, std::move(port), request, options),
      peer_timeout_(request.peer_timeout),
      device_segments_(std::min(segments_per_request,
                                static_cast<std::uint32_t>(std::max(fabric_.port().limits.max_sge, 1)))),
      longest_piece_(fabric_.port().state.max_msg_sz),
      reads_out_(reads(fabric_.port().limits.max_qp_init_rd_atom)),
      reads_in_(reads(fabric_.port().limits.max_qp_rd_atom)),
      extended_(options.extended.value_or(!fabric_.port().software())),
      extended_entries_(extended_.load()) {
  attributes_.device = fabric_.port().name + "/" + std::to_string(fabric_.port().number) + "/" +
                       std::to_string(fabric_.usual_gid().gid_index);
  // Bound to one address only when it was asked for; else each connection chooses among the device's.
  // The address of a device that was named as well, and does not have it, binds the control connections
  // alone: the core, which does that, tells it.
  if (request.address.empty())
    attributes_.local_address = "any";
  else if (fabric_.port().gid_of(request.address) != nullptr)
    attributes_.local_address = address_text(fabric_.port(), fabric_.usual_gid());
}

Context::~Context() = default;

std::unique_ptr<provider::CompletionQueue> Context::create_completion_queue(std::uint32_t capacity,
                                                                            provider::QueueEvents& events) {
  auto queue = Queue::make(*this, capacity, events);
  {
    const std::lock_guard lock(queues_mutex_);
    queues_.push_back(queue.get());
  }
  request_service();
  return queue;
}

std::unique_ptr<provider::ReceiveQueue> Context::create_receive_queue(provider::CompletionQueue& queue,
                                                                      std::uint32_t depth,
                                                                      std::uint64_t user_value) {
  return std::make_unique<SharedReceives>(*this, static_cast<Queue&>(queue), depth, user_value);
}

std::unique_ptr<provider::MemoryRegion> Context::register_memory(const RegistrationRequest& request) {
  return std::make_unique<Region>(*this, request);
}

std::unique_ptr<provider::Endpoint> Context::prepare_endpoint(const provider::EndpointRequest& request) {
  auto& receives = *static_cast<Queue*>(request.receive_queue);
  auto& sends = *static_cast<Queue*>(request.send_queue);
  if (&receives != &sends) receives.driven_by(sends);
  constexpr int most_tries = 16;
  for (int tries = 1;; ++tries) {
    const std::uint64_t gone = pairs_gone();
    try {
      return Endpoint::make(*this, receives, request);
    } catch (const Error& error) {
      if (error.code() != Status::resource_limit || tries == most_tries) throw;
      // The device may be full of pairs that the helper has not destroyed yet, or just has.
      if (!release_ended_pair() && pairs_gone() == gone) throw;
    }
  }
}

// One at a time: destroying takes the kernel milliseconds, for which others would wait.
bool Context::release_ended_pair() noexcept {
  const std::lock_guard lock(queues_mutex_);
  for (Queue* queue : queues_) {
    const engine::HelperEntry entry(queue->gate());
    for (Endpoint* endpoint : queue->members()) {
      if (!endpoint->leaves_pair()) continue;
      endpoint->release_pair();
      return true;
    }
  }
  return false;
}

void Context::request_service() noexcept {
  service_is_near_.store(true, std::memory_order_relaxed);
  if (events_ != nullptr) events_->request_service();
}

Context::Clock::time_point Context::service(Clock::time_point now) noexcept {
  constexpr std::chrono::milliseconds near{50};
  const std::lock_guard lock(queues_mutex_);
  // First: whoever posts from here on finds it far, and asks.
  service_is_near_.store(false, std::memory_order_relaxed);
  read_events();
  auto next = Clock::time_point::max();
  if (port_down_since_ != Clock::time_point::max()) {
    const auto patience = port_down_since_ + peer_timeout_ / 3;
    if (now >= patience) {
      tell_all("port " + std::to_string(fabric_.port().number) + " of device " + fabric_.port().name +
               " is down");
      port_down_since_ = Clock::time_point::max();
    } else {
      next = patience;
    }
  }
  for (Queue* queue : queues_) queue->serve(now, next);
  if (next <= now + near) service_is_near_.store(true, std::memory_order_relaxed);
  return next;
}

void Context::read_events() noexcept {
  ibv_async_event event{};
  while (ibv_get_async_event(fabric_.device(), &event) == 0) {
    const std::string text = "device " + fabric_.port().name + ": " + ibv_event_type_str(event.event_type);
    const bool this_port = event.element.port_num == fabric_.port().number;
    // Acknowledged only afterwards: until then the object named cannot be destroyed.
    switch (event.event_type) {
      case IBV_EVENT_DEVICE_FATAL:
        host_.log(LogLevel::error, text);
        tell_all(text);
        break;
      case IBV_EVENT_PORT_ERR:
        if (!this_port) break;
        host_.log(LogLevel::warning, text + ", port " + std::to_string(event.element.port_num) +
                                         "; endpoints end unless it comes back within " +
                                         std::to_string((peer_timeout_ / 3).count()) + " ms");
        port_down_since_ = Clock::now();
        break;
      case IBV_EVENT_PORT_ACTIVE:
        if (this_port) port_down_since_ = Clock::time_point::max();
        break;
      case IBV_EVENT_QP_FATAL:
        tell_pair(event.element.qp, text);
        break;
      case IBV_EVENT_CQ_ERR:
      case IBV_EVENT_SRQ_ERR:
        host_.log(LogLevel::error, text);
        tell_all(text);
        break;
      default:  // the rest shows in entries of the queues as well
        host_.log(LogLevel::debug, text);
        break;
    }
    ibv_ack_async_event(&event);
  }
}

void Context::tell_pair(const ibv_qp* pair, std::string_view text) noexcept {
  for (Queue* queue : queues_) {
    const engine::HelperEntry entry(queue->gate());
    for (Endpoint* endpoint : queue->members()) {
      if (endpoint->is_pair(pair)) endpoint->device_failed(text);
    }
  }
}

void Context::tell_all(std::string_view text) noexcept {
  for (Queue* queue : queues_) {
    const engine::HelperEntry entry(queue->gate());
    for (Endpoint* endpoint : queue->members()) endpoint->device_failed(text);
  }
}

Status Context::retire_region(std::uint64_t token) noexcept {
  // No group moves while all gates are held, so that looking and forgetting are one step (MEM-5).
  const std::lock_guard lock(queues_mutex_);
  if (regions_.find(token) == nullptr) return Status::ok;  // retired before
  for (Queue* queue : queues_) queue->gate().enter_helper();
  bool used = false;
  for (Queue* queue : queues_) {
    queue->drive_all();
    for (Endpoint* endpoint : queue->members()) {
      if (!endpoint->uses(token)) continue;
      used = true;
      endpoint->confirm_soon();
    }
    for (const SharedReceives* receives : queue->shared_receives()) used = used || receives->uses(token);
  }
  if (!used) {
    regions_.retire(token);
    for (Queue* queue : queues_) queue->forget_region(token);
  }
  for (Queue* queue : queues_) queue->gate().leave_helper();
  return used ? Status::busy : Status::ok;
}

void Context::collect_users(std::uint64_t token, bool all, std::vector<std::uint32_t>& endpoint_ids) {
  const std::lock_guard lock(queues_mutex_);
  for (Queue* queue : queues_) {
    const engine::HelperEntry entry(queue->gate());
    for (const Endpoint* endpoint : queue->members()) {
      if (all || endpoint->uses(token)) endpoint_ids.push_back(endpoint->id());
    }
  }
}

void Context::cancel_shared_receives(std::uint64_t token) noexcept {
  const std::lock_guard lock(queues_mutex_);
  for (Queue* queue : queues_) {
    const engine::HelperEntry entry(queue->gate());
    for (SharedReceives* receives : queue->shared_receives()) receives->cancel(token);
  }
}

void Context::forget(Queue& queue) noexcept {
  const std::lock_guard lock(queues_mutex_);
  std::erase(queues_, &queue);
  for (Queue* other : queues_) {
    const engine::HelperEntry entry(other->gate());
    other->no_longer_drives(queue);
  }
  const auto values = queue.counts().values();
  for (std::size_t i = 0; i < values.size(); ++i) counted_before_[i] += values[i];
}

std::vector<Counter> Context::counters() const {
  const std::lock_guard lock(queues_mutex_);
  auto sums = counted_before_;
  for (Queue* queue : queues_) {
    const engine::HelperEntry entry(queue->gate());
    const auto values = queue->all_counts().values();
    for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
  }
  std::vector<Counter> counters;
  for (std::size_t i = 0; i < sums.size(); ++i) counters.push_back({name_of_count[i], sums[i]});
  return counters;
}

void Context::enter_child() noexcept {
  // The parent's other threads are gone, perhaps with locks held: touch nothing that could wait.
  for (Queue* queue : queues_) queue->enter_child();
  fabric_.enter_child();
}

}  // namespace weft::verbs
