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

// One call into where the engine wants the next bytes: how many came, or -errno.
std::ptrdiff_t TcpEndpoint::receive_once(std::size_t& wanted) noexcept {
  std::array<iovec, 2> places;
  const int count = inbound(places);
  wanted = places[0].iov_len;
  const engine::ProgramMemoryAccess unjudged;
  ssize_t length = 0;
  if (count == 1) {
    length = ::recv(descriptor(), places[0].iov_base, wanted, MSG_DONTWAIT);
  } else {
    wanted += places[1].iov_len;
    length = ::readv(descriptor(), places.data(), count);
  }
  return length >= 0 ? length : -errno;
}

bool TcpEndpoint::receive_some() noexcept { return receive_run(false); }

bool TcpEndpoint::receive_rest(std::ptrdiff_t length) noexcept {
  if (length <= 0) return length == -EINTR ? receive_run(false) : judge(length, false);
  engine::Counts::add(group().counts().arrivals);
  if (!arrived_in_scratch(static_cast<std::size_t>(length))) return true;
  if (static_cast<std::size_t>(length) == engine::Group::scratch_size || among_large_payloads())
    return receive_run(true);
  settle();
  return true;
}

// A few at most, for the others' sake (PRG-1). `any`: something came before.
bool TcpEndpoint::receive_run(bool any) noexcept {
  constexpr int most_reads = 8;
  for (int i = any ? 1 : 0; i < most_reads && moving(); ++i) {
    std::size_t wanted = 0;
    const std::ptrdiff_t length = receive_once(wanted);
    if (length == -EINTR) continue;
    if (length <= 0) return judge(length, any);
    any = true;
    engine::Counts::add(group().counts().arrivals);
    if (!arrived(static_cast<std::size_t>(length))) return true;
    // Among large payloads more is worth a look: what it completes is acknowledged together.
    if (static_cast<std::size_t>(length) < wanted && !among_large_payloads()) break;
  }
  if (any) settle();
  return any;
}

// Nothing came, at the end of a run: nothing is there, or the stream ended.
bool TcpEndpoint::judge(std::ptrdiff_t length, bool any) noexcept {
  if (any) settle();
  if (length == -EAGAIN || length == -EWOULDBLOCK) {
    engine::Counts::add(group().counts().empty_arrivals);
    return any;
  }
  if (length == 0) {
    path_broken(0, "the peer closed its end of the connection");
  } else {
    path_broken(static_cast<std::int32_t>(-length), "receiving failed");
  }
  return true;
}

}  // namespace weft::tcp
