#include "port.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "errors.hpp"

namespace weft::ofi {

using Submitted = engine::MessageEndpoint::Submitted;
using engine::message::Header;

namespace {

std::string key_of(const std::vector<std::byte>& address) {
  return {reinterpret_cast<const char*>(address.data()), address.size()};
}

// A header as a tag and the immediate data beside it. That its engine's header was left out (engine::wire::
// is_plain_message) stands in a bit of the kind that no kind has.
constexpr std::uint32_t is_plain = 0x40U << engine::message::slot_bits;

[[nodiscard]] constexpr std::uint64_t tag_of(const Header& header) noexcept {
  return std::uint64_t{header.slot_and_kind} << 32 | header.sequence;
}
[[nodiscard]] constexpr Header header_of(std::uint64_t tag, std::uint64_t data) noexcept {
  return {data, static_cast<std::uint32_t>(tag >> 32), static_cast<std::uint32_t>(tag)};
}

// What a call that sends answered.
[[nodiscard]] Submitted outcome(ssize_t code, Submitted taken, std::int32_t& native_code) noexcept {
  if (code == 0) [[likely]]
    return taken;
  if (code == -FI_EAGAIN || code == -FI_ENOMEM || code == -FI_ENOBUFS) return Submitted::no_room;
  native_code = static_cast<std::int32_t>(code);
  return Submitted::broken;
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
      swift_size_(device_->fabric().swift_size),
      rdm_(*device_, device_->info(number), uses_tags() ? FI_CQ_FORMAT_TAGGED : FI_CQ_FORMAT_MSG,
           device_->fabric().waits && !device_->fabric().rings) {
  make_receives();
}

void Port::make_receives() {
  const std::size_t count =
      std::min<std::size_t>(receives_wanted, std::max<std::size_t>(rdm_.info->rx_attr->size / 2, 1));
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
  rdm_.registrations.reserve(rdm_.registrations.size() + 1);
  fid_mr* registration = nullptr;
  static std::atomic<std::uint64_t> next_key{1};
  check(fi_mr_reg(rdm_.domain.get(), bytes, length, FI_SEND | FI_RECV, 0, next_key.fetch_add(1), 0,
                  &registration, nullptr),
        "libfabric cannot register " + std::to_string(length) + " bytes for messages");
  rdm_.registrations.emplace_back(registration);
  return fi_mr_desc(registration);
}

fi_addr_t Port::add_peer(const std::vector<std::byte>& address) {
  const std::string key = key_of(address);
  Peer& peer = peers_[key];
  if (peer.users == 0 && peer.address == FI_ADDR_UNSPEC) {
    if (device_->fabric().maps_once) peer.here = neighbours().find(address);
    try {
      peer.address = rdm_.insert(address);
    } catch (...) {
      peers_.erase(key);
      throw;
    }
  }
  ++peer.users;
  return peer.address;
}

// What this port may still touch goes first, while it is there.
// rxm of libfabric 1.17 closes a connection and only then takes what had arrived there, for which it posts a
// new receive to the connection that is gone.
Port::~Port() {
  if (!device_->fabric().empties) return;
  constexpr int most_looks = 64;
  constexpr int most_quiet = 4;
  std::array<fi_cq_tagged_entry, most_entries> entries;
  for (int look = 0, quiet = 0; look < most_looks && quiet < most_quiet; ++look) {
    const ssize_t count = fi_cq_read(rdm_.completions.get(), entries.data(), entries.size());
    fi_cq_err_entry error{};
    if (count == -FI_EAVAIL && fi_cq_readerr(rdm_.completions.get(), &error, 0) < 0) return;
    quiet = count == -FI_EAGAIN ? quiet + 1 : 0;
  }
}

void Port::retire() noexcept {
  if (!device_->fabric().maps_once) return;
  for (auto& [key, peer] : peers_) {
    if (peer.address != FI_ADDR_UNSPEC)
      static_cast<void>(fi_av_remove(rdm_.addresses.get(), &peer.address, 1, 0));
  }
  peers_.clear();
}

void Port::drop_peer(const std::vector<std::byte>& address) noexcept {
  const auto found = peers_.find(key_of(address));
  if (found == peers_.end() || --found->second.users != 0) return;
  // Another endpoint may meet it again. (shm of libfabric 1.17 crashes on what a peer it has forgotten still
  // sends.)
  if (!device_->fabric().forgets) return;
  static_cast<void>(fi_av_remove(rdm_.addresses.get(), &found->second.address, 1, 0));
  peers_.erase(found);
}

Submitted Port::submit(engine::SendBuffer& buffer, fi_addr_t peer, std::int32_t& native_code) noexcept {
  const bool inject = buffer.length <= inject_size_ && !buffer.confirmed;
  const Submitted taken = inject ? Submitted::done : Submitted::under_way;
  if (uses_tags()) {
    const auto header = engine::wire::load<Header>(buffer.bytes);
    const std::byte* const bytes = buffer.bytes + sizeof header;
    const std::size_t length = buffer.length - sizeof header;
    const ssize_t code =
        inject ? fi_tinjectdata(rdm_.endpoint.get(), bytes, length, header.token, peer, tag_of(header))
               : fi_tsenddata(rdm_.endpoint.get(), bytes, length, buffer.registration, header.token, peer,
                              tag_of(header), buffer.fabric_context.data());
    return outcome(code, taken, native_code);
  }
  const ssize_t code = inject ? fi_inject(rdm_.endpoint.get(), buffer.bytes, buffer.length, peer)
                              : fi_send(rdm_.endpoint.get(), buffer.bytes, buffer.length, buffer.registration,
                                        peer, buffer.fabric_context.data());
  return outcome(code, taken, native_code);
}

Submitted Port::submit_small(const Header& header, const iovec& bytes, fi_addr_t peer,
                             std::int32_t& native_code) noexcept {
  const auto* at = static_cast<const std::byte*>(bytes.iov_base);
  std::size_t length = bytes.iov_len;
  std::uint64_t tag = tag_of(header);
  if (length <= swift_size_ + sizeof(engine::wire::Header) && engine::wire::is_plain_message(at, length)) {
    at += sizeof(engine::wire::Header);
    length -= sizeof(engine::wire::Header);
    tag |= std::uint64_t{is_plain} << 32;
  }
  if (length > swift_size_ || !uses_tags()) return Submitted::no_room;
  const ssize_t code = fi_tinjectdata(rdm_.endpoint.get(), at, length, header.token, peer, tag);
  return outcome(code, Submitted::done, native_code);
}

Port::Receive* Port::receive_of(void* context) noexcept {
  auto* const receive = static_cast<Receive*>(context);
  const bool ours = receive >= receives_.data() && receive < receives_.data() + receives_.size();
  return ours ? receive : nullptr;
}

void Port::post(Receive& receive) noexcept {
  constexpr std::uint64_t any_tag = ~std::uint64_t{0};
  const ssize_t code = uses_tags() ? fi_trecv(rdm_.endpoint.get(), receive.bytes + sizeof(Header),
                                              message_size_ - sizeof(Header), receive_registration_,
                                              FI_ADDR_UNSPEC, 0, any_tag, &receive.context)
                                   : fi_recv(rdm_.endpoint.get(), receive.bytes, message_size_,
                                             receive_registration_, FI_ADDR_UNSPEC, &receive.context);
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
  return uses_tags() ? read_completions<fi_cq_tagged_entry>() : read_completions<fi_cq_msg_entry>();
}

template <class Entry>
bool Port::read_completions() noexcept {
  std::array<Entry, most_entries> entries;
  const ssize_t count = fi_cq_read(rdm_.completions.get(), entries.data(), entries.size());
  if (count == -FI_EAGAIN) [[likely]]
    return false;
  if (count < 0) {
    if (count == -FI_EAVAIL) take_error();
    return true;
  }
  for (ssize_t i = 0; i < count; ++i) {
    const Entry& entry = entries[static_cast<std::size_t>(i)];
    Receive* const receive = receive_of(entry.op_context);
    if (receive != nullptr) {
      take(*receive, entry);
      post(*receive);
    } else if (entry.op_context != nullptr) {
      events_.on_sent(*static_cast<engine::SendBuffer*>(entry.op_context));
    }
  }
  return count != 0;
}

void Port::take(Receive& receive, const fi_cq_msg_entry& entry) noexcept {
  events_.on_message(receive.bytes, std::min(entry.len, message_size_));
}

void Port::take(Receive& receive, const fi_cq_tagged_entry& entry) noexcept {
  Header header = header_of(entry.tag, (entry.flags & FI_REMOTE_CQ_DATA) != 0 ? entry.data : 0);
  std::byte* bytes = receive.bytes + sizeof(Header);
  std::size_t length = std::min(entry.len, message_size_ - sizeof(Header));
  if ((header.slot_and_kind & is_plain) != 0) {
    header.slot_and_kind &= ~is_plain;
    static_assert(sizeof(Header) == sizeof(engine::wire::Header));
    bytes = receive.bytes;
    engine::wire::store_plain_header(bytes, length);
    length += sizeof(Header);
  }
  events_.on_message(header, bytes, length);
}

// Only the context is believed: what failed stands in our own records.
void Port::take_error() noexcept {
  fi_cq_err_entry entry{};
  const ssize_t code = fi_cq_readerr(rdm_.completions.get(), &entry, 0);
  if (code < 1 || entry.op_context == nullptr) return;
  if (Receive* const receive = receive_of(entry.op_context); receive != nullptr) {
    if (entry.err != FI_ECANCELED) post(*receive);
    return;
  }
  events_.on_send_failed(*static_cast<engine::SendBuffer*>(entry.op_context), entry.err);
}

}  // namespace weft::ofi
