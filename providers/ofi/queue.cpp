#include "queue.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "address.hpp"
#include "context.hpp"

namespace weft::ofi {

OfiQueue::OfiQueue(OfiContext& context, std::uint32_t capacity, provider::QueueEvents& events)
    : MessageQueue(context, capacity, events), context_(context) {
  if (context.fabric().waits) descriptors_follow();
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
  return found != places_.end() ? *found->port : open_port(std::move(key));
}

void* OfiQueue::register_buffers(std::byte* bytes, std::size_t length) {
  // Fabrics whose ports come later need no registration: rxm copies what it was not told of.
  return places_.empty() ? nullptr : places_.front().port->register_memory(bytes, length);
}

bool OfiQueue::progress() noexcept {
  bool any = false;
  for (const Place& place : places_) any = place.port->progress() || any;
  return any;
}

bool OfiQueue::arm_fabric() noexcept {
  return std::all_of(places_.begin(), places_.end(),
                     [](const Place& place) { return place.port->may_sleep(); });
}

void OfiQueue::on_send_failed(engine::SendBuffer& buffer, std::int32_t code) noexcept {
  send_failed(buffer, code, fi_strerror(code));
}

}  // namespace weft::ofi
