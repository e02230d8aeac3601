// Sketch: devices, queues and regions on verbs (see verbs_sketch.hpp).
#include "verbs_sketch.hpp"

#include <fcntl.h>
#include <netinet/in.h>

#include <algorithm>

#include "verbs_completion.hpp"
#include "verbs_memory.hpp"
namespace weft::sketch::verbs {

std::vector<FabricReport> Provider::probe(provider::Host&) {
  std::vector<FabricReport> reports;
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  for (int i = 0; i < count; ++i) {
    FabricReport report;
    report.name = report.device = ibv_get_device_name(list[i]);
    report.trust = Trust::connected_peers;  // SEC-3: keys of 32 bits
    ibv_device_attr limits{};
    ibv_port_attr port{};
    if (DeviceHandle device{ibv_open_device(list[i])}; !device)
      report.reason = std::string("cannot be opened: ") + std::strerror(errno);
    else if (device->device->transport_type == IBV_TRANSPORT_IWARP)
      report.reason = "iWARP has no receiver-not-ready and no atomics";
    else if (ibv_query_device(device.get(), &limits) != 0 || ibv_query_port(device.get(), 1, &port) != 0)
      report.reason = "does not answer queries";
    else if (port.state != IBV_PORT_ACTIVE)
      report.reason = std::string("port 1 is ") + ibv_port_state_str(port.state);
    else
      report.usable = true, report.priority = 100;
    reports.push_back(std::move(report));
  }
  if (list != nullptr) ibv_free_device_list(list);
  if (reports.empty()) reports.emplace_back().reason = "no RDMA device on this machine";
  return reports;
}

std::vector<provider::Variable> Provider::variables() const {
  return {{"WEFT_VERBS_GID_INDEX", "by address", "entry of the port's GID table, 0 to gid_tbl_len - 1"}};
}

std::unique_ptr<provider::Context> Provider::open(provider::Host& host, const provider::OpenRequest& request,
                                                  std::unique_ptr<provider::Context>) {
  // A real fork safety check: ibv_is_fork_initialized() tells when the kernel copies pinned pages by itself.
  if (ibv_is_fork_initialized() == IBV_FORK_DISABLED) static_cast<void>(ibv_fork_init());
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  DeviceHandle chosen;
  for (int i = 0; i < count && !chosen; ++i) {
    if (!request.beneath.empty() && request.beneath != ibv_get_device_name(list[i])) continue;
    DeviceHandle device{ibv_open_device(list[i])};
    ibv_gid_entry entry{};
    // Without a name: the first device that has the address among its GIDs.
    for (std::uint32_t n = 0; device && !chosen && ibv_query_gid_ex(device.get(), 1, n, &entry, 0) == 0; ++n)
      if (request.address.empty() || gid_matches(entry.gid, request.address)) chosen = std::move(device);
  }
  if (list != nullptr) ibv_free_device_list(list);
  if (!chosen) throw Error(Status::not_found, "no RDMA device fits '" + std::string(request.beneath) + "'");
  return std::make_unique<Context>(host, std::move(chosen), 1, request);
}

Context::Context(provider::Host& services, DeviceHandle opened, std::uint8_t number,
                 const provider::OpenRequest& request)
    : host(services),
      events(request.events),
      device(std::move(opened)),
      domain(ibv_alloc_pd(device.get())),
      port(number),
      peer_timeout(request.peer_timeout) {
  if (!domain) refuse("ibv_alloc_pd", errno);
  ibv_td_init_attr for_threads{};
  if (request.thread_mode == ThreadMode::single) threads.reset(ibv_alloc_td(device.get(), &for_threads));
  ibv_parent_domain_init_attr wanted{};
  wanted.pd = domain.get();
  wanted.td = threads.get();
  if (threads) parent.reset(ibv_alloc_parent_domain(device.get(), &wanted));
  if (ibv_query_device(device.get(), &limits) != 0 || ibv_query_port(device.get(), port, &port_state) != 0)
    refuse("query of the device", errno);
  scratch_region.reset(ibv_reg_mr(domain.get(), scratch.data(), sizeof scratch,
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
  if (!scratch_region) refuse("registering 16 bytes", errno);
  attributes_.provider = "verbs";
  attributes_.device = ibv_get_device_name(device->device);
  attributes_.fabric = port_state.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand";
  attributes_.segment_size = 128ull << port_state.active_mtu;
  attributes_.thread_mode = request.thread_mode;
  attributes_.trust = Trust::connected_peers;
  attributes_.atomic_scope =
      limits.atomic_cap == IBV_ATOMIC_GLOB ? AtomicScope::device_and_cpu : AtomicScope::device;
  Limits& most = attributes_.limits;
  most.max_message = port_state.max_msg_sz;
  most.max_transfer = 1ull << 62;  // OPS-9: split by Endpoint::build
  most.max_inline = 64;
  most.max_segments = segments_per_request;
  most.send_depth = static_cast<std::uint32_t>(limits.max_qp_wr) / 2;
  most.receive_depth = static_cast<std::uint32_t>(limits.max_qp_wr);
  most.max_outstanding_reads =
      static_cast<std::uint32_t>(std::min(limits.max_qp_rd_atom, limits.max_qp_init_rd_atom));
  most.unexpected_bytes = 0;  // OPS-3: the sender's hardware waits, receiver-not-ready for ever
  attributes_.max_key_size = sizeof(Key);
}

Context::~Context() {
  // MEM-7: the parent owns what these would talk to; only memory is left to the child.
  if (!in_child) return;
  static_cast<void>(scratch_region.release());
  static_cast<void>(parent.release());
  static_cast<void>(threads.release());
  static_cast<void>(domain.release());
  static_cast<void>(device.release());
}

void Context::enter_child() noexcept {
  in_child = true;  // data-path calls look at it through their queue pair's absence
  for (CompletionQueue* queue : queues) close(queue->descriptor());
  close(device->cmd_fd);
  close(device->async_fd);
}

std::unique_ptr<provider::CompletionQueue> Context::create_completion_queue(
    std::uint32_t capacity, provider::QueueEvents& queue_events) {
  return std::make_unique<CompletionQueue>(*this, capacity, queue_events);
}
std::unique_ptr<provider::ReceiveQueue> Context::create_receive_queue(provider::CompletionQueue& queue,
                                                                      std::uint32_t depth,
                                                                      std::uint64_t value) {
  return std::make_unique<ReceiveQueue>(*this, static_cast<CompletionQueue&>(queue), depth, value);
}
std::unique_ptr<provider::MemoryRegion> Context::register_memory(const RegistrationRequest& request) {
  return std::make_unique<MemoryRegion>(*this, request);
}
std::unique_ptr<provider::Endpoint> Context::prepare_endpoint(const provider::EndpointRequest& request) {
  return std::make_unique<Endpoint>(*this, request);
}

bool gid_matches(const ibv_gid& gid, std::span<const std::byte> address) {
  sockaddr_storage storage{};
  std::memcpy(&storage, address.data(), std::min(address.size(), sizeof storage));
  if (storage.ss_family == AF_INET6)
    return std::memcmp(gid.raw, &reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr, 16) == 0;
  static constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return storage.ss_family == AF_INET && std::memcmp(gid.raw, mapped, 12) == 0 &&
         std::memcmp(gid.raw + 12, &reinterpret_cast<const sockaddr_in&>(storage).sin_addr, 4) == 0;
}

int Context::gid_index(std::span<const std::byte> local_address, ibv_gid& gid) const {
  if (const auto text = host.variable("WEFT_VERBS_GID_INDEX")) {
    const unsigned long index = std::stoul(*text);
    if (index >= static_cast<unsigned long>(port_state.gid_tbl_len) ||
        ibv_query_gid(device.get(), port, static_cast<int>(index), &gid) != 0)
      throw Error(Status::invalid_argument,
                  "WEFT_VERBS_GID_INDEX is '" + *text + "', out of the port's table");
    return static_cast<int>(index);
  }
  ibv_gid_entry entry{};
  for (int n = 0; n < port_state.gid_tbl_len; ++n) {
    if (ibv_query_gid_ex(device.get(), port, static_cast<std::uint32_t>(n), &entry, 0) != 0) continue;
    const bool routable =
        port_state.link_layer != IBV_LINK_LAYER_ETHERNET || entry.gid_type == IBV_GID_TYPE_ROCE_V2;
    if (!routable || (!local_address.empty() && !gid_matches(entry.gid, local_address))) continue;
    gid = entry.gid;
    return n;
  }
  throw Error(Status::unreachable, "no GID of " + attributes_.device + " has the connection's local address");
}

void Context::read_asynchronous_events() noexcept {
  ibv_async_event event{};  // async_fd is non-blocking; every event is acknowledged, else destroy hangs
  while (!in_child && ibv_get_async_event(device.get(), &event) == 0) {
    const bool of_device =
        event.event_type == IBV_EVENT_DEVICE_FATAL || event.event_type == IBV_EVENT_PORT_ERR;
    const bool of_pair = event.event_type == IBV_EVENT_QP_FATAL || event.event_type == IBV_EVENT_QP_REQ_ERR ||
                         event.event_type == IBV_EVENT_QP_ACCESS_ERR;
    // The responder's side of a fault: why, the peer knows best; the core waits for its word (ERR-2).
    for (auto& [number, endpoint] : by_pair_number)
      if (of_device || (of_pair && event.element.qp->qp_num == number))
        endpoint->lost(event.event_type == IBV_EVENT_QP_ACCESS_ERR ? Status::remote_access_error
                       : of_device                                 ? Status::aborted
                                                                   : Status::peer_lost,
                       event.event_type, ibv_event_type_str(event.event_type));
    ibv_ack_async_event(&event);
  }
}

Context::Clock::time_point Context::service(Clock::time_point now) noexcept {
  const std::lock_guard guard(lock);
  read_asynchronous_events();
  bool soon = false;
  for (CompletionQueue* queue : queues) {
    queue->drive();  // MEM-5, PRG-5: confirmations without a poll
    if (queue->has_entries()) queue->make_readable();
  }
  for (auto& [number, endpoint] : by_pair_number) soon |= endpoint->tend(now);
  idle_ = !soon;
  return now +
         (soon ? std::chrono::milliseconds(10) : std::max(peer_timeout / 3, std::chrono::milliseconds(30)));
}

CompletionQueue::CompletionQueue(Context& owner, std::uint32_t capacity, provider::QueueEvents& events)
    : owner_(owner),
      capacity_(capacity),
      channel_(ibv_create_comp_channel(owner.device.get())),
      events_(events) {
  if (!channel_) refuse("ibv_create_comp_channel", errno);
  if (fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK) != 0) refuse("fcntl", errno);
  const std::lock_guard guard(owner.lock);
  owner.queues.push_back(this);
}

CompletionQueue::~CompletionQueue() {
  const std::lock_guard guard(owner_.lock);
  std::erase(owner_.queues, this);
  if (!owner_.in_child) return;
  for (Hardware& one : hardware_) static_cast<void>(one.queue.release());
  static_cast<void>(channel_.release());
}

ibv_cq* CompletionQueue::attach(Endpoint* endpoint, std::uint32_t entries) {
  if (endpoint != nullptr && std::ranges::find(endpoints_, endpoint) == endpoints_.end())
    endpoints_.push_back(endpoint);
  for (Hardware& one : hardware_)
    if (one.capacity - one.used >= entries) return one.used += entries, one.queue.get();
  const auto most = static_cast<std::uint32_t>(owner_.limits.max_cqe);
  const std::uint32_t size = std::min(most, std::max(entries, 4096u));
  if (entries > most)
    throw Error(Status::resource_limit, "depths exceed the device's max_cqe " + std::to_string(most));
  Hardware added{
      QueueHandle{ibv_create_cq(owner_.device.get(), static_cast<int>(size), this, channel_.get(), 0)}, size,
      entries};
  if (!added.queue) refuse("ibv_create_cq of " + std::to_string(size), errno);
  hardware_.push_back(std::move(added));
  return hardware_.back().queue.get();
}

void CompletionQueue::detach(Endpoint* endpoint, ibv_cq* queue, std::uint32_t entries) noexcept {
  std::erase(endpoints_, endpoint);
  for (Hardware& one : hardware_)
    if (one.queue.get() == queue) one.used -= entries;
}

bool CompletionQueue::reserve(std::uint32_t entries) noexcept {
  return capacity_ - reserved_ >= entries ? (reserved_ += entries, true) : false;
}

void CompletionQueue::make_readable() noexcept {
  if (std::exchange(armed_, false)) events_.readable();
}

void CompletionQueue::drive() noexcept {
  std::array<ibv_wc, poll_batch> entries;
  for (Hardware& one : hardware_) {
    int count = poll_batch;
    while (count == poll_batch && (count = ibv_poll_cq(one.queue.get(), poll_batch, entries.data())) > 0)
      for (int i = 0; i < count; ++i)
        if (const auto found = owner_.by_pair_number.find(entries[static_cast<std::size_t>(i)].qp_num);
            found != owner_.by_pair_number.end())
          found->second->absorb(entries[static_cast<std::size_t>(i)]);
  }
}

std::size_t CompletionQueue::poll(Completion* out, std::size_t room) noexcept {
  const std::lock_guard guard(owner_.lock);
  if (owner_.in_child) return 0;
  drive();
  std::size_t count = 0;
  for (ReceiveQueue* shared : shared_)
    if (count < room && shared->take_report(out[count])) ++count;
  for (std::size_t visited = 0; visited < endpoints_.size() && count < room; ++visited)
    count += endpoints_[next_++ % endpoints_.size()]->take(*this, out + count, room - count);
  return count;
}

bool CompletionQueue::arm() noexcept {
  const std::lock_guard guard(owner_.lock);
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0)
    ibv_ack_cq_events(queue, 1);  // non-blocking
  for (Hardware& one : hardware_)
    if (ibv_req_notify_cq(one.queue.get(), 0) != 0) return false;
  drive();  // what came between the last poll and the request would raise no event (PRG-4)
  armed_ = !has_entries();
  return armed_;
}

bool CompletionQueue::has_entries() const noexcept {
  return std::ranges::any_of(endpoints_, [&](const Endpoint* one) { return one->ready(*this); }) ||
         std::ranges::any_of(shared_, [](const ReceiveQueue* one) { return one->has_report(); });
}

}  // namespace weft::sketch::verbs
