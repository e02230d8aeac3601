// Sketch: the provider interface on libfabric (see ofi_sketch.hpp).
#include "ofi_sketch.hpp"

#include "ofi_endpoint.hpp"

namespace weft::sketch::ofi {

namespace {

// What weft asks of every fabric. Atomics are never asked for: rxm would drop the order then.
InfoHandle offer(const Fabric& fabric, std::span<const std::byte> address, ThreadMode mode) {
  InfoHandle hints{fi_allocinfo()};
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = mode == ThreadMode::single ? FI_THREAD_DOMAIN : FI_THREAD_SAFE;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_SAW;
  hints->fabric_attr->prov_name = strdup(fabric.provider);
  if (fabric.has_socket_addresses && !address.empty()) {
    hints->src_addr = malloc(address.size());  // freed with the hints
    std::memcpy(hints->src_addr, address.data(), address.size());
    hints->src_addrlen = address.size();
    hints->addr_format = FI_SOCKADDR;
  }
  fi_info* found = nullptr;
  if (const int code = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found); code != 0)
    throw Error(Status::unavailable, std::string(fabric.provider) + ": " + fi_strerror(-code));
  InfoHandle info{found};
  if ((info->tx_attr->msg_order & FI_ORDER_SAS) == 0)  // ORD-1 rests on it: asserted, not assumed
    throw Error(Status::unavailable, std::string(fabric.provider) + " does not keep the order of messages");
  return info;
}

}  // namespace

std::vector<FabricReport> Provider::probe(provider::Host& host) {
  std::vector<FabricReport> reports;
  for (const Fabric& fabric : fabrics) {
    FabricReport& report = reports.emplace_back();
    report.name = fabric.name;
    report.priority = fabric.priority;
    report.trust = fabric.trust;
    try {
      const Context usable(host, fabric, offer(fabric, {}, ThreadMode::safe), {});
      report.device = usable.info->domain_attr->name;
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
      std::ranges::find_if(fabrics, [&](const Fabric& one) { return request.beneath == one.name; });
  if (found == fabrics.end())
    throw Error(Status::not_found,
                "libfabric fabric '" + std::string(request.beneath) + "' is not known; shm, tcp are");
  return std::make_unique<Context>(host, *found, offer(*found, request.address, request.thread_mode),
                                   request);
}

Context::Context(provider::Host& services, const Fabric& which, InfoHandle offered,
                 const provider::OpenRequest& request)
    : host(services), events(request.events), fabric(which), info(std::move(offered)) {
  fabric_handle = opened<fid_fabric>(
      "fi_fabric", [&](fid_fabric** out) { return fi_fabric(info->fabric_attr, out, nullptr); });
  domain = opened<fid_domain>("fi_domain", [&](fid_domain** out) {
    return fi_domain(fabric_handle.get(), info.get(), out, nullptr);
  });
  fi_av_attr wanted{};
  wanted.type = FI_AV_TABLE;
  addresses = opened<fid_av>("fi_av_open",
                             [&](fid_av** out) { return fi_av_open(domain.get(), &wanted, out, nullptr); });
  attributes_.provider = "ofi";
  attributes_.fabric = fabric.name;
  attributes_.device = info->domain_attr->name;
  attributes_.segment_size = frame_size;
  attributes_.thread_mode = request.thread_mode;
  attributes_.trust = fabric.trust;
  attributes_.atomic_scope = AtomicScope::device_and_cpu;  // the engine's, by the CPU's own instructions
  attributes_.deviations.push_back(
      {"MEM-7", "libfabric hides its descriptors", "the peer is told by the core"});
}

std::unique_ptr<provider::CompletionQueue> Context::create_completion_queue(
    std::uint32_t capacity, provider::QueueEvents& queue_events) {
  return std::make_unique<CompletionQueue>(*this, capacity, queue_events);
}
std::unique_ptr<provider::ReceiveQueue> Context::create_receive_queue(provider::CompletionQueue& queue,
                                                                      std::uint32_t depth,
                                                                      std::uint64_t user_value) {
  return std::make_unique<engine::SharedReceives>(static_cast<CompletionQueue&>(queue).entries(), depth,
                                                  user_value);
}
std::unique_ptr<provider::MemoryRegion> Context::register_memory(const RegistrationRequest& request) {
  return std::make_unique<Region>(*this, request);
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
    for (Endpoint* endpoint : queue->endpoints()) {
      endpoint->tend();
      soon |= endpoint->holds_back() || endpoint->connecting();  // both sides, from prepare on: see tend()
    }
  }
  return now + std::chrono::milliseconds(soon ? 10 : 50);
}

CompletionQueue::CompletionQueue(Context& owner, std::uint32_t capacity, provider::QueueEvents& events)
    : owner_(owner), entries_(capacity, events) {
  fi_cq_attr wanted{};
  wanted.format = FI_CQ_FORMAT_TAGGED;
  wanted.size = 4096;  // a real one: frames of all endpoints; the program's capacity is the engine's business
  wanted.wait_obj = owner.fabric.has_descriptor ? FI_WAIT_FD : FI_WAIT_NONE;
  queue_ = opened<fid_cq>(
      "fi_cq_open", [&](fid_cq** out) { return fi_cq_open(owner.domain.get(), &wanted, out, nullptr); });
  if (owner.fabric.has_descriptor)
    if (const int code = fi_control(&queue_->fid, FI_GETWAIT, &descriptor_); code != 0)
      refuse("FI_GETWAIT", code);
  const std::lock_guard guard(owner.lock);
  owner.queues.push_back(this);
}

CompletionQueue::~CompletionQueue() {
  const std::lock_guard guard(owner_.lock);
  std::erase(owner_.queues, this);
  if (owner_.in_child) static_cast<void>(queue_.release());
}

void CompletionQueue::drive() noexcept {
  std::array<fi_cq_tagged_entry, read_batch> batch;
  ssize_t count = 0;
  do {
    count = fi_cq_read(queue_.get(), batch.data(), batch.size());
    for (ssize_t i = 0; i < count; ++i) {
      const fi_cq_tagged_entry& entry = batch[static_cast<std::size_t>(i)];
      auto& slot = *static_cast<Slot*>(entry.op_context);
      slot.endpoint->finished(slot, entry.len, entry.tag, 0);
    }
    if (count == -FI_EAVAIL) read_error();  // it blocks normal reads until it is taken
  } while (count == static_cast<ssize_t>(read_batch) || count == -FI_EAVAIL);
}

void CompletionQueue::read_error() noexcept {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(queue_.get(), &entry, 0) != 1 || entry.op_context == nullptr) return;
  auto& slot = *static_cast<Slot*>(entry.op_context);
  slot.endpoint->finished(slot, 0, 0, entry.err);
}

std::size_t CompletionQueue::poll(Completion* out, std::size_t room) noexcept {
  const std::lock_guard guard(owner_.lock);
  if (owner_.in_child) return 0;
  drive();
  return entries_.take(out, room);
}

bool CompletionQueue::arm() noexcept {
  const std::lock_guard guard(owner_.lock);
  drive();
  if (!entries_.arm()) return false;
  fid* waiting = &queue_->fid;
  if (owner_.fabric.has_descriptor) return fi_trywait(owner_.fabric_handle.get(), &waiting, 1) == FI_SUCCESS;
  // The price of a fabric without descriptors: one frame per endpoint and sleep, a ring per wake-up. What
  // came in before the peers knew is seen by looking once more, or rung for (Endpoint::finished).
  if (!std::ranges::all_of(endpoints_, [](Endpoint* one) { return one->tell_asleep(); })) return false;
  drive();
  return entries_.arm();
}

Region::Region(Context& owner, const RegistrationRequest& request)
    : engine::Region(owner.host, request),
      base_(static_cast<std::byte*>(request.address)),
      address_keys_((owner.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0) {
  if (request.kind != RegistrationRequest::Kind::host)
    throw Error(Status::unsupported, "device memory is not supported over libfabric here");
  std::uint64_t rights = FI_SEND | FI_REMOTE_READ;  // sources are pulled from
  if (has(request.access, Access::local_write)) rights |= FI_RECV | FI_READ;
  native_ = opened<fid_mr>("fi_mr_reg", [&](fid_mr** out) {
    return fi_mr_reg(owner.domain.get(), request.address, request.length, rights, 0, token(), 0, out,
                     nullptr);
  });
}

}  // namespace weft::sketch::ofi
