#include "ucx_endpoint.hpp"

#include <sys/stat.h>

#include <cstring>

#include "ucx_context.hpp"
#include "ucx_queue.hpp"
#include "weft/status.hpp"
#include "worker_address.hpp"

namespace weft::ucx {

namespace {

// What stands before the worker's address: the network namespace of the process. Over shared memory UCX wakes
// a sleeper by a socket that is known in one namespace only.
using Network = std::uint64_t;

Network own_network() noexcept {
  struct stat status {};
  return stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

UcxEndpoint::UcxEndpoint(UcxContext& context, UcxQueue& queue, const provider::EndpointRequest& request)
    : engine::MessageEndpoint(context, queue, request),
      queue_(queue),
      rdma_(context.library().rdma),
      by_listener_(context.library().lanes->wire_up == WireUp::listener),
      shared_memory_(context.library().transports.find("sysv") != std::string::npos ||
                     context.library().transports.find("posix") != std::string::npos),
      same_host_only_(shared_memory_ && context.library().transports.find("tcp") == std::string::npos) {}

UcxEndpoint::~UcxEndpoint() {
  const engine::HelperEntry entry(queue_.gate());
  disconnect_fabric();
}

std::vector<std::byte> UcxEndpoint::fabric_blob(const provider::PathAddresses& path) {
  if (by_listener_) {
    const sockaddr_in6 own = mapped(path.local);
    if (!is_loopback(own) && !same_ip(own, rdma_.address)) {
      throw Error(Status::unreachable, "the connection's local address " + ip_text(own) +
                                           " is not that of device " + rdma_.name + ", which has " +
                                           ip_text(rdma_.address) + "; connect to and from that one");
    }
    std::vector<std::byte> blob(MeetingPlace::size);
    queue_.meeting_place().encode(std::span<std::byte, MeetingPlace::size>(blob.data(), blob.size()));
    return blob;
  }
  const Network network = own_network();
  std::vector<std::byte> blob(sizeof network);
  std::memcpy(blob.data(), &network, sizeof network);
  const engine::HelperEntry entry(queue_.gate());
  const std::vector<std::byte> address = queue_.worker_address();
  blob.insert(blob.end(), address.begin(), address.end());
  return blob;
}

bool UcxEndpoint::connect_to_listener(std::span<const std::byte> blob, const provider::PeerParameters& peer) {
  const auto place = MeetingPlace::decode(blob);
  if (!place) throw Error(Status::protocol, "the peer's description names no listener of a UCX worker");
  sockaddr_in6 address = mapped(peer.path.peer);
  if (is_loopback(address)) address = rdma_.address;
  address.sin6_port = place->port;
  // The side that establishes last connects: to the other one, which therefore says that it is ready before
  // anybody came. Nobody is told "up" before both are.
  path_ = &queue_.join_listener(*place, address, !peer.initiator, *this);
  return path_->ready || path_->awaited;
}

bool UcxEndpoint::connect_fabric(std::span<const std::byte> blob, const provider::PeerParameters& peer) {
  if (by_listener_) return connect_to_listener(blob, peer);
  Network network = 0;
  if (blob.size() <= sizeof network)
    throw Error(Status::protocol, "the peer's description holds no address of a UCX worker");
  std::memcpy(&network, blob.data(), sizeof network);
  const auto address = blob.subspan(sizeof network);
  if (same_host_only_ && elsewhere(queue_.worker_address(), address)) {
    throw Error(Status::unreachable,
                "the peer is on another host, or in a container with System V memory of its own, which UCX's "
                "shared memory does not reach; use ucx:tcp, or tcp");
  }
  const bool unwoken = shared_memory_ && network != own_network();
  if (unwoken) ring_for_sleepers();
  path_ = &queue_.join_path(address, *this, unwoken);
  return path_->ready;
}

UcxEndpoint::Submitted UcxEndpoint::submit(engine::SendBuffer& buffer, std::int32_t& native_code) noexcept {
  if (path_ == nullptr) {
    native_code = UCS_ERR_NOT_CONNECTED;
    return Submitted::broken;
  }
  if (path_->endpoint == nullptr) return Submitted::no_room;  // the peer lied about being there
  const ucs_status_ptr_t request = queue_.send(*path_, buffer);
  if (request == nullptr) return Submitted::done;
  if (UCS_PTR_IS_PTR(request)) return Submitted::under_way;
  native_code = UCS_PTR_STATUS(request);
  return Submitted::broken;
}

UcxEndpoint::Submitted UcxEndpoint::submit_small(const engine::message::Header& header, const iovec& bytes,
                                                 std::int32_t& native_code) noexcept {
  if (path_ == nullptr || path_->endpoint == nullptr) return Submitted::no_room;  // submit() says why
  const ucs_status_t status = UcxQueue::send_small(*path_, header, bytes);
  if (status == UCS_OK) return Submitted::done;
  if (status == UCS_ERR_NO_RESOURCE) return Submitted::no_room;
  native_code = status;
  return Submitted::broken;
}

void UcxEndpoint::path_lost(ucs_status_t status) noexcept {
  const bool was_ready = path_->ready || path_->awaited;
  path_ = nullptr;  // it has forgotten this endpoint
  if (was_ready) {
    path_broken(status, ucs_status_string(status));
  } else {
    events().failed(Status::unreachable, 0, status, ucs_status_string(status));
  }
}

void UcxEndpoint::disconnect_fabric() noexcept {
  if (path_ == nullptr) return;
  queue_.leave_path(*path_, *this);
  path_ = nullptr;
}

}  // namespace weft::ucx
