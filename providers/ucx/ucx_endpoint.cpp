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
      shared_memory_(context.library().transports != "tcp"),
      same_host_only_(context.library().transports.find("tcp") == std::string::npos) {}

UcxEndpoint::~UcxEndpoint() {
  const engine::HelperEntry entry(queue_.gate());
  disconnect_fabric();
}

std::vector<std::byte> UcxEndpoint::fabric_blob(const provider::PathAddresses& /*path*/) {
  const Network network = own_network();
  std::vector<std::byte> blob(sizeof network);
  std::memcpy(blob.data(), &network, sizeof network);
  const engine::HelperEntry entry(queue_.gate());
  const std::vector<std::byte> address = queue_.worker_address();
  blob.insert(blob.end(), address.begin(), address.end());
  return blob;
}

bool UcxEndpoint::connect_fabric(std::span<const std::byte> blob, const provider::PeerParameters& /*peer*/) {
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
  const ucs_status_ptr_t request = queue_.send(*path_, buffer);
  if (request == nullptr) return Submitted::done;
  if (UCS_PTR_IS_PTR(request)) return Submitted::under_way;
  native_code = UCS_PTR_STATUS(request);
  return Submitted::broken;
}

UcxEndpoint::Submitted UcxEndpoint::submit_small(const engine::message::Header& header, const iovec& bytes,
                                                 std::int32_t& native_code) noexcept {
  if (path_ == nullptr) return Submitted::no_room;  // submit() says why
  const ucs_status_t status = UcxQueue::send_small(*path_, header, bytes);
  if (status == UCS_OK) return Submitted::done;
  if (status == UCS_ERR_NO_RESOURCE) return Submitted::no_room;
  native_code = status;
  return Submitted::broken;
}

void UcxEndpoint::path_lost(ucs_status_t status) noexcept {
  const bool was_ready = path_->ready;
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
