#include "tcp_endpoint.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "common/context.hpp"
#include "common/program_memory.hpp"
#include "tcp_queue.hpp"

namespace weft::tcp {

TcpEndpoint::TcpEndpoint(engine::Context& context, TcpQueue& queue, const provider::EndpointRequest& request)
    : engine::Endpoint(context, queue, request), queue_(queue) {}

TcpEndpoint::~TcpEndpoint() {
  const engine::HelperEntry entry(queue_.gate());
  detach();
}

bool TcpEndpoint::establish(const provider::PeerParameters& peer) {
  socket_ = peer.connection;
  return engine::Endpoint::establish(peer);
}

void TcpEndpoint::attach() noexcept {
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  attached_ = true;
  queue_.add(*this);
}

void TcpEndpoint::detach() noexcept {
  if (!attached_) return;  // the socket is still the core's
  attached_ = false;
  queue_.remove(*this);
  ::close(socket_);
  socket_ = -1;
}

void TcpEndpoint::close_in_child() noexcept {
  if (attached_) ::close(socket_);
  attached_ = false;
  socket_ = -1;
}

std::ptrdiff_t TcpEndpoint::transmit(const iovec* pieces, int count) noexcept {
  engine::Counts& counts = group().counts();
  const engine::ProgramMemoryAccess unjudged;
  while (true) {
    ssize_t taken = 0;
    if (count == 1) {
      taken = ::send(socket_, pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else {
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(pieces);  // sendmsg does not write to it
      message.msg_iovlen = static_cast<std::size_t>(count);
      taken = ::sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (taken >= 0) {
      engine::Counts::add(counts.transmissions);
      return taken;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOMEM) {
      engine::Counts::add(counts.refused_transmissions);
      return 0;
    }
    return -errno;
  }
}

void TcpEndpoint::output_waits(bool waits) noexcept {
  if (waits_for_room_ == waits) return;
  waits_for_room_ = waits;
  queue_.output_waits(*this, waits);
}

bool TcpEndpoint::step() noexcept {
  // A few reads at most, so that the other endpoints of the queue have their turn (PRG-1).
  constexpr int most_reads = 4;
  engine::Counts& counts = group().counts();
  bool any = false;
  if (!moving()) {  // failed, and waits for its end
    queue_.remove(*this);
    return false;
  }
  for (int i = 0; i < most_reads && attached_; ++i) {
    std::array<iovec, 2> places;
    const int count = inbound(places);
    std::size_t wanted = places[0].iov_len;
    ssize_t length = 0;
    {
      const engine::ProgramMemoryAccess unjudged;
      if (count == 1) {
        length = ::recv(socket_, places[0].iov_base, wanted, MSG_DONTWAIT);
      } else {
        wanted += places[1].iov_len;
        length = ::readv(socket_, places.data(), count);
      }
    }
    if (length > 0) {
      any = true;
      engine::Counts::add(counts.arrivals);
      if (!arrived(static_cast<std::size_t>(length))) return true;
      if (static_cast<std::size_t>(length) < wanted) break;
      continue;
    }
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      engine::Counts::add(counts.empty_arrivals);
      break;
    }
    if (any) settle();
    if (length == 0) {
      path_broken(0, "the peer closed its end of the connection");
    } else {
      path_broken(errno, "receiving failed");
    }
    queue_.remove(*this);
    return true;
  }
  if (any) settle();
  return any;
}

void TcpEndpoint::resume() noexcept { push_output(); }

}  // namespace weft::tcp
