#include "endpoint.hpp"

#include <cerrno>
#include <exception>
#include <utility>

#include "address.hpp"
#include "context.hpp"

namespace weft::ofi {

namespace {

// In front of the address.
struct Preamble {
  std::uint32_t message_size = 0;  // both sides must cut messages alike
  std::uint32_t zero = 0;
  engine::CrossMemory::Address memory{};  // zeros: offers nothing
};
static_assert(sizeof(Preamble) == 32);

}  // namespace

OfiEndpoint::OfiEndpoint(OfiContext& context, OfiQueue& queue, const provider::EndpointRequest& request)
    : MessageEndpoint(context, queue, request),
      context_(context),
      queue_(queue),
      fabric_(context.fabric()),
      message_size_(context.message_options().buffers.size) {
  if (context.options().offer_from == 0) return;
  if (fabric_.fetch_size == 0) {
    memory_.emplace(context.host());
  } else if (context.take_pull_port()) {
    pulls_ = Pulls::not_yet;
  }
}

OfiEndpoint::~OfiEndpoint() {
  if (pulls_ == Pulls::never) return;
  const engine::HelperEntry entry(queue_.gate());
  if (pull_port_ && queue_.in_child()) {
    pull_port_->abandon();
  } else {
    stop_pull();
  }
  context_.give_pull_port();
}

// The first large payload goes by messages, and the queue's helper makes what it takes for the next.
std::size_t OfiEndpoint::offer(const engine::Piece& memory, std::span<std::byte> token) noexcept {
  if (memory_) return engine::CrossMemory::offer(memory, token);
  large_payload_passes();
  return pull_port_ ? pull_port_->offer(memory, token) : 0;
}

engine::MessageEndpoint::Submitted OfiEndpoint::pull(std::uint64_t number, std::span<const std::byte> token,
                                                     std::uint64_t offset, std::byte* to,
                                                     std::uint64_t length,
                                                     std::int32_t& native_code) noexcept {
  if (memory_) return memory_->pull(token, offset, to, length, native_code);
  native_code = -EPROTO;  // it offered before it was told that it may
  if (!pull_port_) return Submitted::broken;
  if (!pull_port_->reaches()) {
    const auto address = PullPort::address_in(token);
    const bool narrow = port_->speaks_ipv4_only();
    if (!address || address->is_any() || address->port == 0 || (narrow && !address->is_mapped()))
      return Submitted::broken;
    try {
      pull_port_->connect(address->as_socket_address(narrow, peer_scope_));
    } catch (const std::exception&) {
      return Submitted::broken;
    }
  }
  return pull_port_->fetch(number, token, offset, to, length, native_code);
}

void OfiEndpoint::want_pull_port() noexcept {
  pulls_ = Pulls::wanted;
  queue_.want_pull_port(*this);
}

void OfiEndpoint::adopt(std::unique_ptr<PullPort> port) noexcept {
  pulls_ = Pulls::failed;
  if (!port) return;
  try {
    PullEvents& events = *this;
    port->set_events(events);
    queue_.watch(*port);
    pull_port_ = std::move(port);
    pulls_ = Pulls::ready;
    may_be_offered();
  } catch (const std::exception&) {
    return;
  }
}

void OfiEndpoint::stop_pull() noexcept {
  if (pulls_ == Pulls::wanted) queue_.want_no_pull_port(*this);
  if (pulls_ != Pulls::never) pulls_ = Pulls::failed;
  if (pull_port_) queue_.drop(*pull_port_);
}

std::vector<std::byte> OfiEndpoint::fabric_blob(const provider::PathAddresses& path) {
  port_ = &queue_.port_at(path.local);
  std::vector<std::byte> bytes(sizeof(Preamble));
  engine::wire::store(bytes.data(), Preamble{message_size_, 0,
                                             memory_ ? memory_->address() : engine::CrossMemory::Address{}});
  if (!fabric_.by_address) {
    bytes.insert(bytes.end(), port_->name().begin(), port_->name().end());
    return bytes;
  }
  const auto bound = InternetAddress::from(port_->name());
  if (!bound) throw Error(Status::system_error, "libfabric's endpoint has an address of an unknown kind");
  bound->encode(bytes);
  return bytes;
}

bool OfiEndpoint::connect_fabric(std::span<const std::byte> blob, const provider::PeerParameters& peer) {
  constexpr std::size_t longest_name = 256;
  if (blob.size() <= sizeof(Preamble) || blob.size() > sizeof(Preamble) + longest_name)
    throw Error(Status::protocol, "the peer's address on the fabric is malformed");
  const auto preamble = engine::wire::load<Preamble>(blob.data());
  if (preamble.message_size != message_size_ || preamble.zero != 0) {
    throw Error(Status::incompatible, "the peer cuts messages of " + std::to_string(preamble.message_size) +
                                          " bytes and this side of " + std::to_string(message_size_) +
                                          "; set WEFT_OFI_MESSAGE_SIZE alike on both");
  }
  const auto name = blob.subspan(sizeof(Preamble));
  if (fabric_.by_address) {
    const auto address = InternetAddress::decode(name);
    if (!address || address->is_any() || address->port == 0)
      throw Error(Status::protocol, "the peer's address on the fabric is malformed");
    const bool narrow = port_->speaks_ipv4_only();
    if (narrow && !address->is_mapped())
      throw Error(Status::unreachable, "the peer has an IPv6 address and this side is bound to an IPv4 one");
    peer_scope_ = scope_of(peer.path.peer);
    peer_address_ = address->as_socket_address(narrow, peer_scope_);
  } else {
    peer_address_.assign(name.begin(), name.end());
    // Names are text to the library.
    if (fabric_.named_here) peer_address_.push_back(std::byte{0});
  }
  peer_ = port_->add_peer(peer_address_);
  if (memory_)
    memory_->connect(preamble.memory);  // where the kernel does not let us payload travels in messages
  return true;
}

void OfiEndpoint::on_fetch_failed(std::int32_t code) noexcept {
  queue_.pull_failed(*this, code, "what the peer offered cannot be read; it may have ended");
}

void OfiEndpoint::disconnect_fabric() noexcept {
  stop_pull();
  if (std::exchange(peer_, FI_ADDR_UNSPEC) != FI_ADDR_UNSPEC) port_->drop_peer(peer_address_);
}

}  // namespace weft::ofi
