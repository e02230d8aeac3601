#include "tcp_endpoint.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "common/program_memory.hpp"
#include "same_host.hpp"
#include "tcp_context.hpp"

namespace weft::tcp {

TcpEndpoint::TcpEndpoint(TcpContext& context, engine::DescriptorQueue& queue,
                         const provider::EndpointRequest& request)
    : engine::DescriptorEndpoint(context, queue, request) {}

bool TcpEndpoint::establish(const provider::PeerParameters& peer) {
  connection_ = peer.connection;
  return engine::Endpoint::establish(peer);
}

int TcpEndpoint::take_descriptor() noexcept {
  const int on = 1;
  setsockopt(connection_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  stop_pacing_on_this_host(connection_);
  return connection_;
}

std::ptrdiff_t TcpEndpoint::transmit(const iovec* pieces, int count) noexcept {
  engine::Counts& counts = group().counts();
  const engine::ProgramMemoryAccess unjudged;
  while (true) {
    ssize_t taken = 0;
    if (count == 1) {
      taken = ::send(descriptor(), pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else {
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(pieces);  // sendmsg does not write to it
      message.msg_iovlen = static_cast<std::size_t>(count);
      taken = ::sendmsg(descriptor(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
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

bool TcpEndpoint::receive_some() noexcept {
  // A few at most, for the others' sake (PRG-1).
  constexpr int most_reads = 8;
  engine::Counts& counts = group().counts();
  bool any = false;
  for (int i = 0; i < most_reads && moving(); ++i) {
    std::array<iovec, 2> places;
    const int count = inbound(places);
    std::size_t wanted = places[0].iov_len;
    ssize_t length = 0;
    {
      const engine::ProgramMemoryAccess unjudged;
      if (count == 1) {
        length = ::recv(descriptor(), places[0].iov_base, wanted, MSG_DONTWAIT);
      } else {
        wanted += places[1].iov_len;
        length = ::readv(descriptor(), places.data(), count);
      }
    }
    if (length > 0) {
      any = true;
      engine::Counts::add(counts.arrivals);
      if (!arrived(static_cast<std::size_t>(length))) return true;
      // Among large payloads more is worth a look: what it completes is acknowledged together.
      if (static_cast<std::size_t>(length) < wanted && !among_large_payloads()) break;
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
    return true;
  }
  if (any) settle();
  return any;
}

}  // namespace weft::tcp
