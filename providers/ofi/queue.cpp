#include "queue.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "address.hpp"
#include "context.hpp"
#include "endpoint.hpp"

namespace weft::ofi {

OfiQueue::OfiQueue(OfiContext& context, std::uint32_t capacity, provider::QueueEvents& events)
    : MessageQueue(context, capacity, events), context_(context) {
  const Fabric& fabric = context.fabric();
  if (fabric.waits && !fabric.rings) {
    descriptors_follow();
  } else if (!fabric.at_once) {
    let_messages_linger();
  }
  wanting_.reserve(OfiContext::most_pull_ports);
  if (!context.fabric().by_address) open_port({});
}

OfiQueue::~OfiQueue() {
  leave_helper_alone();
  for (Place& place : places_) {
    if (in_child()) {
      // The parent's object: a child must not close it (MEM-7).
      static_cast<void>(new std::shared_ptr<Port>(std::move(place.port)));
    } else {
      place.port->retire();
    }
  }
}

void OfiQueue::close_in_child() noexcept {
  context_.abandon_device();
  MessageQueue::close_in_child();
}

Port& OfiQueue::open_port(std::vector<std::byte> address) {
  std::uint64_t number = 0;
  context_.host().random_bytes(std::as_writable_bytes(std::span(&number, 1)));
  PortEvents& events = *this;
  auto port =
      Port::open(context_.open_device(address), number, context_.message_options().buffers.size, events);
  places_.reserve(places_.size() + 1);
  if (port->descriptor() >= 0) watch_fabric(port->descriptor());
  places_.push_back({std::move(address), std::move(port)});
  return *places_.back().port;
}

Port& OfiQueue::port_at(std::span<const std::byte> local_address) {
  if (!context_.fabric().by_address) return *places_.front().port;
  const auto address = InternetAddress::from(local_address);
  if (!address)
    throw Error(Status::unreachable, "the connection to the peer is not one over internet addresses");
  InternetAddress unbound = *address;
  unbound.port = 0;
  std::vector<std::byte> key = unbound.as_socket_address(unbound.is_mapped(), scope_of(local_address));
  const engine::HelperEntry entry(gate());
  const auto found =
      std::find_if(places_.begin(), places_.end(), [&](const Place& place) { return place.address == key; });
  if (found != places_.end()) return *found->port;
  try {
    return open_port(std::move(key));
  } catch (const Error& error) {
    if (!context_.fabric().by_device || error.code() != Status::unavailable) throw;
    throw Error(Status::unreachable, "libfabric opens no device at the connection's local address " +
                                         unbound.text() + " (" + error.what() +
                                         "); connect to and from an address of one");
  }
}

void* OfiQueue::register_buffers(std::byte* bytes, std::size_t length) {
  // Fabrics whose ports come later need no registration: rxm copies what it was not told of.
  return places_.empty() ? nullptr : places_.front().port->register_memory(bytes, length);
}

bool OfiQueue::progress() noexcept {
  bool any = false;
  for (const Place& place : places_) any = place.port->progress() || any;
  if (!pull_ports_.empty()) any = progress_pull_ports() || any;
  return any;
}

// Those where nothing is under way are looked at only when their descriptors woke somebody.
bool OfiQueue::progress_pull_ports() noexcept {
  const bool everywhere = std::exchange(look_everywhere_, false);
  bool any = false;
  // What arrives may end endpoints, which drop their ports.
  for (std::size_t i = pull_ports_.size(); i-- != 0;) {
    if (i < pull_ports_.size() && (everywhere || pull_ports_[i]->is_busy()))
      any = pull_ports_[i]->progress() || any;
  }
  return any;
}

void OfiQueue::want_pull_port(OfiEndpoint& endpoint) noexcept {
  wanting_.push_back(&endpoint);  // has room for all that a context lets have one
  wanted_.store(true);
  context_.request_service();
}

// Opening one takes milliseconds, for which the program does not wait. One a round: the thread has others to
// look after.
void OfiQueue::serve() noexcept {
  if (!wanted_.exchange(false)) return;
  OfiEndpoint* endpoint = nullptr;
  const Port* port = nullptr;
  {
    const engine::HelperEntry entry(gate());
    if (wanting_.empty()) return;
    endpoint = wanting_.front();
    port = &endpoint->port();  // stays for as long as this queue
  }
  std::unique_ptr<PullPort> made;
  try {
    std::uint64_t keys = 0;
    context_.host().random_bytes(std::as_writable_bytes(std::span(&keys, 1)));
    made = std::make_unique<PullPort>(port->device(), keys);
  } catch (const std::exception&) {
    made.reset();  // payload goes by messages
  }
  const engine::HelperEntry entry(gate());
  if (std::erase(wanting_, endpoint) != 0) endpoint->adopt(std::move(made));
  if (wanting_.empty()) return;
  wanted_.store(true);
  context_.request_service();
}

void OfiQueue::watch(PullPort& port) {
  pull_ports_.reserve(pull_ports_.size() + 1);
  if (port.descriptor() >= 0) watch_fabric(port.descriptor());
  pull_ports_.push_back(&port);
}

void OfiQueue::drop(PullPort& port) noexcept {
  if (std::erase(pull_ports_, &port) == 0) return;
  if (port.descriptor() >= 0) forget_fabric(port.descriptor());
  port.close();
}

bool OfiQueue::arm_fabric() noexcept {
  const bool ready =
      std::all_of(places_.begin(), places_.end(), [](const Place& place) { return place.port->may_sleep(); });
  look_everywhere_ =
      !std::all_of(pull_ports_.begin(), pull_ports_.end(), [](PullPort* port) { return port->may_sleep(); });
  return ready && !look_everywhere_;
}

void OfiQueue::on_send_failed(engine::SendBuffer& buffer, std::int32_t code) noexcept {
  send_failed(buffer, code, fi_strerror(code));
}

}  // namespace weft::ofi
