#include "overtaking.hpp"

#include <algorithm>

namespace mutants {

namespace {

constexpr std::chrono::milliseconds longest{40};

}  // namespace

void Overtaking::open(provider::Context& /*inner*/, const provider::OpenRequest& request) {
  is_single_ = request.thread_mode == weft::ThreadMode::single;
}

Overtaking::Held Overtaking::copy(Endpoint& endpoint, const WorkRequest& request) {
  Held held;
  held.endpoint = &endpoint;
  held.request = request;
  held.segments.assign(request.segments.begin(), request.segments.end());
  for (Segment& segment : held.segments) {
    if (segment.region != 0 || segment.length == 0) continue;
    const auto* first = reinterpret_cast<const std::byte*>(segment.offset);
    held.inline_bytes.emplace_back(first, first + segment.length);
    segment.offset = reinterpret_cast<std::uintptr_t>(held.inline_bytes.back().data());
  }
  held.since = Clock::now();
  return held;
}

bool Overtaking::is_sound(const Endpoint& endpoint, const WorkRequest& request) {
  if (endpoint.inner().post(nullptr, 0).status != Status::ok) return false;  // it has ended
  const weft::Limits limits = endpoint.inner().limits();
  if (request.segments.size() > limits.max_segments || length_of(request) > limits.max_message) return false;
  if (is_inline(request) && length_of(request) > limits.max_inline) return false;
  return std::all_of(request.segments.begin(), request.segments.end(), [&](const Segment& segment) {
    if (segment.region == 0) return segment.length == 0 || is_inline(request);
    bool inside = false;
    with_region(segment.region, [&](std::span<std::byte> bytes) {
      inside = segment.offset <= bytes.size() && segment.length <= bytes.size() - segment.offset;
    });
    return inside;
  });
}

bool Overtaking::release(std::uint32_t endpoint_id) {
  const auto found = waiting_.find(endpoint_id);
  if (found == waiting_.end()) return true;
  Held& held = found->second;
  held.request.segments = held.segments;
  // It has its place among what is told since it was taken.
  if (held.endpoint->inner().post(&held.request, 1).status == Status::again) return false;
  waiting_.erase(found);
  return true;
}

void Overtaking::release_due() {
  std::vector<std::uint32_t> due;
  for (const auto& [id, held] : waiting_) {
    if (held.may_go || !held.passed || Clock::now() - held.since > longest) due.push_back(id);
  }
  for (const std::uint32_t id : due) release(id);
}

PostResult Overtaking::post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) {
  PostResult result;
  if (count == 0) return endpoint.inner().post(requests, count);
  const std::lock_guard lock(mutex_);
  for (; result.accepted < count; ++result.accepted) {
    const WorkRequest& request = requests[result.accepted];
    const auto found = waiting_.find(endpoint.id());
    if (found != waiting_.end() && !found->second.passed) {
      if (passing_(request) && strikes()) {
        found->second.passed = true;
      } else if (!release(endpoint.id())) {
        result.status = Status::again;
        break;
      }
    }
    if (!waiting_.contains(endpoint.id()) && endpoint.is_up() && held_(request) &&
        is_sound(endpoint, request)) {
      waiting_.emplace(endpoint.id(), copy(endpoint, request));
      if (is_signalled(request)) note(endpoint, posted(endpoint, request));
      continue;
    }
    result.status = forward(endpoint, request, posted(endpoint, request));
    if (result.status != Status::ok) break;
  }
  return result;
}

std::size_t Overtaking::poll(Queue& queue, Completion* out, std::size_t room) {
  {
    const std::lock_guard lock(mutex_);
    release_due();
  }
  const std::size_t count = Disguise::poll(queue, out, room);
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_send_side(out[i].operation)) continue;
    const auto found = waiting_.find(out[i].endpoint_id);
    if (found != waiting_.end() && found->second.passed) found->second.may_go = true;
  }
  return count;
}

Clock::time_point Overtaking::service(provider::Context& inner, Clock::time_point now) {
  const auto next = inner.service(now);
  if (is_single_) return next;  // the program's thread alone may post
  const std::lock_guard lock(mutex_);
  release_due();
  return waiting_.empty() ? next : std::min(next, now + longest);
}

void Overtaking::drain(Endpoint& endpoint) {
  {
    const std::lock_guard lock(mutex_);
    release(endpoint.id());
  }
  Disguise::drain(endpoint);
}

void Overtaking::end(Endpoint& endpoint, const provider::EndOrder& order) {
  {
    const std::lock_guard lock(mutex_);
    release(endpoint.id());
    waiting_.erase(endpoint.id());
  }
  Disguise::end(endpoint, order);
}

void Overtaking::destroyed(Endpoint& endpoint) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.erase(endpoint.id());
  }
  Disguise::destroyed(endpoint);
}

}  // namespace mutants
