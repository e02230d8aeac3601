#include "unix_endpoint.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>

#include "unix_context.hpp"

namespace unix_provider {

using weft::engine::Counts;
using weft::engine::EngineBlob;

UnixEndpoint::UnixEndpoint(UnixContext& context, weft::engine::DescriptorQueue& queue,
                           const weft::provider::EndpointRequest& request)
    : DescriptorEndpoint(context, queue, request), unix_context_(context) {}

// What the peer needs to know: the engine's part, then where to come and with which secret. Nobody knows yet
// which side will wait, so both get ready.
std::vector<std::byte> UnixEndpoint::blob(const weft::provider::PathAddresses& path) {
  rendezvous_.emplace(context().host());
  std::vector<std::byte> bytes = DescriptorEndpoint::blob(path);
  bytes.resize(EngineBlob::size + Invitation::size);
  rendezvous_->invitation().encode(
      std::span<std::byte, Invitation::size>(bytes.data() + EngineBlob::size, Invitation::size));
  return bytes;
}

// The side that called connect is asked first, and goes to the other's socket; when the other is asked, it is
// there.
bool UnixEndpoint::establish(const weft::provider::PeerParameters& peer) {
  if (peer.blob.size() != EngineBlob::size + Invitation::size) {
    throw weft::Error(weft::Status::protocol, "the peer's endpoint description has " +
                                                  std::to_string(peer.blob.size()) +
                                                  " bytes, not one of this provider's");
  }
  weft::provider::PeerParameters engine_part = peer;
  engine_part.blob = peer.blob.first(EngineBlob::size);
  const bool ready = DescriptorEndpoint::establish(engine_part);

  socket_ = peer.initiator ? follow(Invitation::decode(peer.blob.last<Invitation::size>()))
                           : rendezvous_->receive_peer();
  rendezvous_.reset();
  if (const auto bytes = unix_context_.buffer()) {
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &*bytes, sizeof *bytes);
  }
  return ready;
}

// Takes what the socket takes; 0 when that is nothing just now, negative when the path is broken.
std::ptrdiff_t UnixEndpoint::transmit(const iovec* pieces, int count) noexcept {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces);  // sendmsg does not write to it
  message.msg_iovlen = static_cast<std::size_t>(count);
  while (true) {
    const ssize_t taken = ::sendmsg(descriptor(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (taken >= 0) {
      Counts::add(group().counts().transmissions);
      return taken;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
      Counts::add(group().counts().refused_transmissions);
      return 0;
    }
    return -errno;
  }
}

// Bytes go where the engine says, a message's payload straight into its receive.
bool UnixEndpoint::receive_some() noexcept {
  constexpr int most_reads = 4;  // then it is another endpoint's turn
  bool any = false;
  for (int reads = 0; reads < most_reads && moving(); ++reads) {
    std::array<iovec, 2> places;
    const int count = inbound(places);
    const ssize_t length = ::readv(descriptor(), places.data(), count);
    if (length > 0) {
      any = true;
      Counts::add(group().counts().arrivals);
      if (!arrived(static_cast<std::size_t>(length))) return true;
      continue;
    }
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && errno == EAGAIN) {
      Counts::add(group().counts().empty_arrivals);
      break;
    }
    const int code = length == 0 ? 0 : errno;
    if (any) settle();
    path_broken(code, code == 0 ? "the peer closed its socket" : "receiving failed");
    return true;
  }
  if (any) settle();  // grants and acknowledgements for all of it leave together
  return any;
}

// In a forked child: nothing here may keep the parent's connection up.
void UnixEndpoint::close_in_child() noexcept {
  socket_.reset();
  rendezvous_.reset();
  DescriptorEndpoint::close_in_child();
}

}  // namespace unix_provider
