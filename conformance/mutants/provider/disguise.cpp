#include "disguise.hpp"

#include <sys/socket.h>

#include <cstring>

namespace mutants {

void KnowsMemory::registered(Region& region) {
  const weft::RegistrationRequest& request = region.request();
  if (request.kind != weft::RegistrationRequest::Kind::host) return;
  const std::lock_guard lock(regions_mutex_);
  regions_[region.token()] = {static_cast<std::byte*>(request.address),
                              static_cast<std::size_t>(request.length)};
}

Status KnowsMemory::deregister(Region& region) {
  const Status status = Behaviour::deregister(region);
  if (status == Status::ok) {
    const std::lock_guard lock(regions_mutex_);
    regions_.erase(region.token());
  }
  return status;
}

bool KnowsMemory::with_region(std::uint64_t token, const std::function<void(std::span<std::byte>)>& with) {
  const std::lock_guard lock(regions_mutex_);
  const auto found = regions_.find(token);
  if (found == regions_.end()) return false;
  with(found->second);
  return true;
}

bool KnowsMemory::with_value(const Segment& segment, const std::function<void(std::uint64_t&)>& with) {
  return with_region(segment.region, [&](std::span<std::byte> bytes) {
    if (segment.length < sizeof(std::uint64_t) || segment.offset + sizeof(std::uint64_t) > bytes.size())
      return;
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + segment.offset, sizeof(value));
    with(value);
    std::memcpy(bytes.data() + segment.offset, &value, sizeof(value));
  });
}

Disguise::Posted Disguise::posted(const Endpoint& endpoint, const WorkRequest& request) {
  Posted posted;
  posted.told = endpoint.completion_of(request);
  if (!request.segments.empty()) posted.first = request.segments[0];
  posted.remote = request.remote;
  posted.operand = request.operand;
  posted.compare = request.compare;
  return posted;
}

Status Disguise::forward(Endpoint& endpoint, const WorkRequest& request, const Posted& posted) {
  std::deque<Posted>& list = under_way_[endpoint.id()];
  if (is_signalled(request)) list.push_back(posted);  // first: another thread may take the completion
  const Status status = endpoint.inner().post(&request, 1).status;
  if (status != Status::ok && is_signalled(request)) list.pop_back();
  return status;
}

PostResult Disguise::post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) {
  PostResult result;
  if (count == 0) return endpoint.inner().post(requests, count);
  const std::lock_guard lock(mutex_);
  for (; result.accepted < count; ++result.accepted) {
    WorkRequest request = requests[result.accepted];
    change(endpoint, request);
    result.status = forward(endpoint, request, posted(endpoint, requests[result.accepted]));
    if (result.status != Status::ok) break;
    accepted(endpoint, requests[result.accepted]);
  }
  return result;
}

std::size_t Disguise::poll(Queue& queue, Completion* out, std::size_t room) {
  const std::size_t count = Behaviour::poll(queue, out, room);
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_send_side(out[i].operation)) continue;
    std::deque<Posted>& list = under_way_[out[i].endpoint_id];
    if (list.empty()) continue;
    const Posted posted = list.front();
    list.pop_front();
    if (out[i].status != Status::ok) continue;
    out[i].context = posted.told.context;
    out[i].bytes = posted.told.bytes;
    out[i].operation = posted.told.operation;
    done(posted, out[i]);
  }
  return count;
}

void Disguise::destroyed(Endpoint& endpoint) {
  const std::lock_guard lock(mutex_);
  under_way_.erase(endpoint.id());
}

namespace {

// The ends of connections in this process, by their addresses.
std::mutex sides_mutex;
std::map<std::string, std::shared_ptr<void>>& sides() {
  static auto* const all = new std::map<std::string, std::shared_ptr<void>>;
  return *all;
}

std::string text_of(const sockaddr_storage& address, socklen_t length) {
  return {reinterpret_cast<const char*>(&address), length};
}

}  // namespace

KnowsItsPeer::Pair& KnowsItsPeer::pair(Endpoint& endpoint) {
  Pair& pair = pairs_[endpoint.id()];
  pair.here->shares = endpoint.shares_receives();
  return pair;
}

PostResult KnowsItsPeer::post_receives(Endpoint& endpoint, const ReceiveRequest* requests,
                                       std::size_t count) {
  std::shared_ptr<Side> here;
  {
    const std::lock_guard lock(pairs_mutex_);
    here = pair(endpoint).here;
  }
  // Counted first, so that no message is taken for an early one that is none.
  here->receives += count;
  const PostResult result = Behaviour::post_receives(endpoint, requests, count);
  here->receives -= count - result.accepted;
  return result;
}

void KnowsItsPeer::establishing(Endpoint& endpoint, const provider::PeerParameters& peer) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t here_length = sizeof(here);
  socklen_t there_length = sizeof(there);
  if (::getsockname(peer.connection, reinterpret_cast<sockaddr*>(&here), &here_length) != 0 ||
      ::getpeername(peer.connection, reinterpret_cast<sockaddr*>(&there), &there_length) != 0) {
    return;
  }
  const std::lock_guard lock(pairs_mutex_);
  Pair& known = pair(endpoint);
  known.here_name = text_of(here, here_length) + text_of(there, there_length);
  known.there_name = text_of(there, there_length) + text_of(here, here_length);
  const std::lock_guard sides_lock(sides_mutex);
  sides()[known.here_name] = known.here;
}

void KnowsItsPeer::destroyed(Endpoint& endpoint) {
  Disguise::destroyed(endpoint);
  const std::lock_guard lock(pairs_mutex_);
  const auto found = pairs_.find(endpoint.id());
  if (found == pairs_.end()) return;
  {
    const std::lock_guard sides_lock(sides_mutex);
    sides().erase(found->second.here_name);
  }
  pairs_.erase(found);
}

std::shared_ptr<KnowsItsPeer::Side> KnowsItsPeer::there(Endpoint& endpoint) {
  const std::lock_guard sides_lock(sides_mutex);
  const auto found = sides().find(pair(endpoint).there_name);
  return found == sides().end() ? nullptr : std::static_pointer_cast<Side>(found->second);
}

void KnowsItsPeer::count_message(Endpoint& endpoint) {
  const std::lock_guard lock(pairs_mutex_);
  ++pair(endpoint).here->messages;
}

std::uint64_t KnowsItsPeer::waiting_here(Endpoint& endpoint) {
  const std::lock_guard lock(pairs_mutex_);
  const auto other = there(endpoint);
  const Side& here = *pair(endpoint).here;
  if (other == nullptr || here.shares || other->messages <= here.receives) return 0;
  return other->messages - here.receives;
}

std::uint64_t KnowsItsPeer::waiting_there(Endpoint& endpoint) {
  const std::lock_guard lock(pairs_mutex_);
  const auto other = there(endpoint);
  const Side& here = *pair(endpoint).here;
  if (other == nullptr || other->shares || here.messages <= other->receives) return 0;
  return here.messages - other->receives;
}

bool KnowsItsPeer::comes_early(Endpoint& endpoint) {
  const std::lock_guard lock(pairs_mutex_);
  const auto other = there(endpoint);
  return other != nullptr && !other->shares && pair(endpoint).here->messages >= other->receives;
}

}  // namespace mutants
