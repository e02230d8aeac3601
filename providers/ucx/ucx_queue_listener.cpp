// Paths of lanes that wire up through a listener.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "ucx_context.hpp"
#include "ucx_endpoint.hpp"
#include "ucx_queue.hpp"

namespace weft::ucx {

namespace {

// Not only time counts: this process may have been stopped meanwhile.
constexpr std::uint32_t least_looks = 500;

// What UCX 1.13 answers for a visitor that is gone already. After other errors it may keep the event of the
// request (of one that makes no sense, for instance), and librdmacm waits for that when the listener ends.
bool tells_of_one_gone(ucs_status_t code) noexcept {
  return code == UCS_ERR_CONNECTION_RESET || code == UCS_ERR_REJECTED || code == UCS_ERR_NOT_CONNECTED ||
         code == UCS_ERR_IO_ERROR || code == UCS_ERR_ENDPOINT_TIMEOUT;
}

}  // namespace

// What two workers share is named by the other's number and by who connects: two programs that connect to
// each other have two paths, and a worker that connects to itself has both ends of one.
Path& UcxQueue::join_listener(const MeetingPlace& place, const sockaddr_in6& address, bool connects,
                              UcxEndpoint& endpoint) {
  // What the worker knows of broken connections comes first.
  progress();
  // The newest: an older one may be lost to the peer, and UCX not know it here yet.
  const auto found = std::find_if(paths_.rbegin(), paths_.rend(), [&](const auto& path) {
    return path->broken == UCS_OK && path->number == place.number && path->awaited != connects;
  });
  if (found == paths_.rend()) return joined(make_listener_path(place, address, connects), endpoint);
  // It may be lost to the peer, whose new visitor came before this endpoint.
  if ((*found)->awaited) listener_->look_again();
  return joined(**found, endpoint);
}

Path& UcxQueue::make_listener_path(const MeetingPlace& place, const sockaddr_in6& address, bool connects) {
  auto path = std::make_unique<Path>();
  path->queue = this;
  path->number = place.number;
  path->awaited = !connects;
  paths_.reserve(paths_.size() + 1);
  if (connects) {
    const PlainAddress to = plain(address);
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS;
    parameters.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER | UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID;
    parameters.sockaddr.addr = reinterpret_cast<const sockaddr*>(&to.storage);
    parameters.sockaddr.addrlen = to.length;
    if (const ucs_status_t code = make_endpoint(*path, parameters); code != UCS_OK) {
      throw Error(Status::unreachable, "the peer cannot be reached by UCX at " + ip_text(address) +
                                           " over device " + context_.library().rdma.name +
                                           ": ucp_ep_create failed: " + ucs_status_string(code));
    }
  }
  paths_.push_back(std::move(path));
  Path& made = *paths_.back();
  if (connects) {
    await_peer(made);
    return made;
  }
  ++awaited_;
  if (const ucp_conn_request_h visitor = listener_->take(place.number); visitor != nullptr) {
    admit(made, visitor);
  }
  return made;
}

void UcxQueue::admit(Path& path, ucp_conn_request_h visitor) noexcept {
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  parameters.conn_request = visitor;
  if (const ucs_status_t code = make_endpoint(path, parameters); code != UCS_OK) {
    if (!unclosable_ && !tells_of_one_gone(code)) {
      unclosable_ = true;
      context_.host().log(
          LogLevel::warning,
          std::string("a peer's connection request cannot be taken (") + ucs_status_string(code) +
              "): a UCX worker stays as it is for the life of this process, since UCX might wait "
              "for ever when it ends");
    }
    path.endpoint = nullptr;
    return;
  }
  await_peer(path);
}

void UcxQueue::admit_visitors() noexcept {
  if (!listener_->look_after_visitors()) return;
  const std::size_t count = paths_.size();  // split() adds to them
  for (std::size_t i = 0; i != count; ++i) {
    Path& path = *paths_[i];
    if (!path.awaited || path.broken != UCS_OK) continue;
    const ucp_conn_request_h visitor = listener_->take(path.number);
    if (visitor == nullptr) continue;
    if (path.endpoint == nullptr) {
      admit(path, visitor);
    } else if (!path.ready || !split(path, visitor)) {
      listener_->keep(visitor, path.number);  // for the next attempt, or nobody
    }
  }
}

// A worker that connects once more has lost the first connection, or mistook this worker for another one
// (SEC-1). So those that are up stay, and those that are not yet are on the new one.
bool UcxQueue::split(Path& path, ucp_conn_request_h visitor) noexcept {
  const auto waits = [](const UcxEndpoint* member) { return !member->is_up(); };
  if (std::none_of(path.members.begin(), path.members.end(), waits)) return false;
  try {
    auto made = std::make_unique<Path>();
    made->queue = this;
    made->number = path.number;
    made->awaited = true;
    std::copy_if(path.members.begin(), path.members.end(), std::back_inserter(made->members), waits);
    paths_.push_back(std::move(made));
  } catch (const std::bad_alloc&) {
    return false;
  }
  std::erase_if(path.members, waits);
  Path& split_off = *paths_.back();
  for (UcxEndpoint* member : split_off.members) member->change_path(split_off);
  ++awaited_;
  admit(split_off, visitor);
  return true;
}

// An attempt that its worker gave up may have left a visitor, whom the next attempt meets first. Once the
// path was up its end is that of all on it.
bool UcxQueue::waits_on(Path& path) noexcept {
  if (!path.awaited || path.ready || path.members.empty() || path.dropped || path.broken == UCS_ERR_TIMED_OUT)
    return false;
  close_path(path);
  path.endpoint = nullptr;
  path.broken = UCS_OK;
  if (const ucp_conn_request_h visitor = listener_->take(path.number); visitor != nullptr)
    admit(path, visitor);
  return true;
}

// One who says that the connection stands, and has not connected, is lost like one who fell silent (ERR-3).
void UcxQueue::look_after_awaited() noexcept {
  const auto now = std::chrono::steady_clock::now();
  awaited_ = 0;
  for (const auto& path : paths_) {
    if (!path->awaited || path->ready || path->broken != UCS_OK) continue;
    ++awaited_;
    const bool is_missed = std::any_of(path->members.begin(), path->members.end(),
                                       [](const UcxEndpoint* member) { return member->is_up(); });
    if (!is_missed || path->looks == 0) path->missed_since = now;
    path->looks = is_missed ? path->looks + 1 : 0;
    if (path->looks < least_looks || now - path->missed_since < context_.peer_timeout()) continue;
    path->broken = UCS_ERR_TIMED_OUT;
    any_broken_ = true;
  }
}

}  // namespace weft::ucx
