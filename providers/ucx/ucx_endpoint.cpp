#include "ucx_endpoint.hpp"

#include "ucx_context.hpp"
#include "ucx_queue.hpp"
#include "weft/status.hpp"

namespace weft::ucx {

UcxEndpoint::UcxEndpoint(UcxContext& context, UcxQueue& queue, const provider::EndpointRequest& request)
    : engine::MessageEndpoint(context, queue, request),
      queue_(queue),
      same_host_only_(context.library().transports.find("tcp") == std::string::npos) {}

UcxEndpoint::~UcxEndpoint() {
  const engine::HelperEntry entry(queue_.gate());
  disconnect_fabric();
}

std::vector<std::byte> UcxEndpoint::fabric_blob(const provider::PathAddresses& /*path*/) {
  const engine::HelperEntry entry(queue_.gate());
  return queue_.worker_address();
}

bool UcxEndpoint::connect_fabric(std::span<const std::byte> blob, const provider::PeerParameters& peer) {
  if (blob.empty()) throw Error(Status::protocol, "the peer's description holds no address of a UCX worker");
  // Shared memory reaches no further; and what another host sends is no address of it.
  if (same_host_only_ && interface_with(peer.path.peer).empty()) {
    throw Error(Status::unreachable,
                "the peer is on another host, which UCX's shared memory does not reach; use ucx:tcp, or tcp");
  }
  path_ = &queue_.join_path(blob, *this);
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
