#include "port.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "errors.hpp"

namespace weft::ofi {

using Submitted = engine::MessageEndpoint::Submitted;

namespace {

std::string key_of(const std::vector<std::byte>& address) {
  return {reinterpret_cast<const char*>(address.data()), address.size()};
}

// The ports of this process by name, for fabrics that map the memory of a peer in the same process only once:
// it is gone for all who send there when its owner closes it.
class Neighbours {
 public:
  void add(const std::vector<std::byte>& name, const std::shared_ptr<Port>& port) {
    const std::lock_guard lock(mutex_);
    std::erase_if(ports_, [](const auto& entry) { return entry.second.expired(); });
    ports_[text_of_name(name)] = port;
  }
  [[nodiscard]] std::shared_ptr<Port> find(const std::vector<std::byte>& name) {
    const std::lock_guard lock(mutex_);
    const auto found = ports_.find(text_of_name(name));
    return found == ports_.end() ? nullptr : found->second.lock();
  }

 private:
  // Names are text, which ends with a zero or with the bytes.
  static std::string text_of_name(const std::vector<std::byte>& name) {
    const std::string whole = key_of(name);
    return whole.substr(0, whole.find('\0'));
  }

  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Port>> ports_;
};

Neighbours& neighbours() {
  static auto* const all = new Neighbours;  // never destroyed
  return *all;
}

}  // namespace

std::shared_ptr<Port> Port::open(std::unique_ptr<Device> device, std::uint64_t number,
                                 std::size_t message_size, PortEvents& events) {
  auto port = std::make_shared<Port>(std::move(device), number, message_size, events);
  if (port->device_->fabric().maps_once) neighbours().add(port->name(), port);
  return port;
}

Port::Port(std::unique_ptr<Device> device, std::uint64_t number, std::size_t message_size, PortEvents& events)
    : device_(std::move(device)),
      events_(events),
      message_size_(message_size),
      inject_size_(device_->inject_size()),
      info_(device_->info(number)),
      domain_(device_->open_domain(*info_)) {
  open_completions();
  open_endpoint();
  make_receives();
}

void Port::open_completions() {
  const Device& device = *device_;
  fi_cq_attr wanted{};
  wanted.format = FI_CQ_FORMAT_MSG;
  wanted.size = device.fabric().queue_size;
  wanted.wait_obj = device.fabric().waits ? FI_WAIT_FD : FI_WAIT_NONE;
  fid_cq* completions = nullptr;
  check(fi_cq_open(domain_.get(), &wanted, &completions, nullptr),
        "libfabric's completion queue cannot be opened");
  completions_.reset(completions);
  if (device.fabric().waits) {
    check(fi_control(&completions_->fid, FI_GETWAIT, &descriptor_),
          "libfabric's queue has no descriptor to wait on");
  }
}

void Port::open_endpoint() {
  fi_av_attr kind{};
  kind.type = info_->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_TABLE : info_->domain_attr->av_type;
  fid_av* addresses = nullptr;
  check(fi_av_open(domain_.get(), &kind, &addresses, nullptr), "libfabric's address vector cannot be opened");
  addresses_.reset(addresses);
  fid_ep* endpoint = nullptr;
  check(fi_endpoint(domain_.get(), info_.get(), &endpoint, nullptr), "libfabric's endpoint cannot be made");
  endpoint_.reset(endpoint);
  check(fi_ep_bind(endpoint, &completions_->fid, FI_TRANSMIT | FI_RECV),
        "libfabric's endpoint cannot be bound");
  check(fi_ep_bind(endpoint, &addresses_->fid, 0), "libfabric's endpoint cannot be bound");
  check(fi_enable(endpoint), "libfabric's endpoint cannot be enabled");
  std::size_t length = 256;
  name_.resize(length);
  check(fi_getname(&endpoint->fid, name_.data(), &length), "libfabric's endpoint has no address");
  name_.resize(std::min(length, name_.size()));
}

void Port::make_receives() {
  const std::size_t count =
      std::min<std::size_t>(receives_wanted, std::max<std::size_t>(info_->rx_attr->size / 2, 1));
  receive_memory_ = std::make_unique_for_overwrite<std::byte[]>(count * message_size_);
  receive_registration_ = register_memory(receive_memory_.get(), count * message_size_);
  receives_.resize(count);
  unposted_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    receives_[i].bytes = receive_memory_.get() + i * message_size_;
    post(receives_[i]);
  }
}

void* Port::register_memory(std::byte* bytes, std::size_t length) {
  if (!device_->needs_registration()) return nullptr;
  registrations_.reserve(registrations_.size() + 1);
  fid_mr* registration = nullptr;
  static std::atomic<std::uint64_t> next_key{1};
  check(fi_mr_reg(domain_.get(), bytes, length, FI_SEND | FI_RECV, 0, next_key.fetch_add(1), 0, &registration,
                  nullptr),
        "libfabric cannot register " + std::to_string(length) + " bytes for messages");
  registrations_.emplace_back(registration);
  return fi_mr_desc(registration);
}

fi_addr_t Port::add_peer(const std::vector<std::byte>& address) {
  const std::string key = key_of(address);
  Peer& peer = peers_[key];
  if (peer.users == 0 && peer.address == FI_ADDR_UNSPEC) {
    if (device_->fabric().maps_once) peer.here = neighbours().find(address);
    const int added = fi_av_insert(addresses_.get(), address.data(), 1, &peer.address, 0, nullptr);
    if (added != 1) {
      peers_.erase(key);
      throw Error(Status::unreachable, "libfabric does not take the peer's address: " +
                                           text_of(added < 0 ? added : -FI_EADDRNOTAVAIL));
    }
  }
  ++peer.users;
  return peer.address;
}

// What this port may still touch goes first, while it is there.
void Port::retire() noexcept {
  if (!device_->fabric().maps_once) return;
  for (auto& [key, peer] : peers_) {
    if (peer.address != FI_ADDR_UNSPEC)
      static_cast<void>(fi_av_remove(addresses_.get(), &peer.address, 1, 0));
  }
  peers_.clear();
}

void Port::drop_peer(const std::vector<std::byte>& address) noexcept {
  const auto found = peers_.find(key_of(address));
  if (found == peers_.end() || --found->second.users != 0) return;
  // Another endpoint may meet it again. (shm of libfabric 1.17 crashes on what a peer it has forgotten still
  // sends.)
  if (!device_->fabric().forgets) return;
  static_cast<void>(fi_av_remove(addresses_.get(), &found->second.address, 1, 0));
  peers_.erase(found);
}

Submitted Port::submit(engine::SendBuffer& buffer, fi_addr_t peer, std::int32_t& native_code) noexcept {
  const bool inject = buffer.length <= inject_size_;
  const ssize_t code = inject ? fi_inject(endpoint_.get(), buffer.bytes, buffer.length, peer)
                              : fi_send(endpoint_.get(), buffer.bytes, buffer.length, buffer.registration,
                                        peer, buffer.fabric_context.data());
  if (code == 0) [[likely]]
    return inject ? Submitted::done : Submitted::under_way;
  if (code == -FI_EAGAIN || code == -FI_ENOMEM || code == -FI_ENOBUFS) return Submitted::no_room;
  native_code = static_cast<std::int32_t>(code);
  return Submitted::broken;
}

Port::Receive* Port::receive_of(void* context) noexcept {
  auto* const receive = static_cast<Receive*>(context);
  const bool ours = receive >= receives_.data() && receive < receives_.data() + receives_.size();
  return ours ? receive : nullptr;
}

void Port::post(Receive& receive) noexcept {
  const ssize_t code = fi_recv(endpoint_.get(), receive.bytes, message_size_, receive_registration_,
                               FI_ADDR_UNSPEC, &receive.context);
  if (code != 0) [[unlikely]]
    unposted_.push_back(&receive);  // has room for all
}

void Port::post_missing() noexcept {
  for (std::size_t left = unposted_.size(); left != 0; --left) {
    Receive* const receive = unposted_.back();
    unposted_.pop_back();
    post(*receive);
  }
}

bool Port::progress() noexcept {
  if (!unposted_.empty()) [[unlikely]]
    post_missing();
  std::array<fi_cq_msg_entry, most_entries> entries;
  const ssize_t count = fi_cq_read(completions_.get(), entries.data(), entries.size());
  if (count == -FI_EAGAIN) [[likely]]
    return false;
  if (count < 0) {
    if (count == -FI_EAVAIL) take_error();
    return true;
  }
  for (ssize_t i = 0; i < count; ++i) take(entries[static_cast<std::size_t>(i)]);
  return count != 0;
}

void Port::take(const fi_cq_msg_entry& entry) noexcept {
  Receive* const receive = receive_of(entry.op_context);
  if (receive != nullptr) {
    events_.on_message(receive->bytes, std::min(entry.len, message_size_));
    post(*receive);
  } else if (entry.op_context != nullptr) {
    events_.on_sent(*static_cast<engine::SendBuffer*>(entry.op_context));
  }
}

// Only the context is believed: what failed stands in our own records.
void Port::take_error() noexcept {
  fi_cq_err_entry entry{};
  const ssize_t code = fi_cq_readerr(completions_.get(), &entry, 0);
  if (code < 1 || entry.op_context == nullptr) return;
  if (Receive* const receive = receive_of(entry.op_context); receive != nullptr) {
    if (entry.err != FI_ECANCELED) post(*receive);
    return;
  }
  events_.on_send_failed(*static_cast<engine::SendBuffer*>(entry.op_context), entry.err);
}

bool Port::may_sleep() noexcept {
  fid* const waited_for = &completions_->fid;
  fid* list = waited_for;
  return fi_trywait(device_->native(), &list, 1) == FI_SUCCESS;
}

}  // namespace weft::ofi
