#include "endpoint.hpp"

#include "context.hpp"
#include "decorators/common/text.hpp"
#include "limits.hpp"

namespace weft::strict {
namespace {

constexpr std::uint64_t full_posts = 8;  // one request in so many is answered `again`

}  // namespace

StrictEndpoint::StrictEndpoint(StrictContext& context, const provider::EndpointRequest& request)
    : decorator::Endpoint(request), context_(context), outstanding_(std::make_shared<Outstanding>(0)) {
  context_.endpoints().add(id(), outstanding_);
}

StrictEndpoint::~StrictEndpoint() { context_.endpoints().remove(id()); }

Limits StrictEndpoint::limits() const noexcept { return smallest(inner().limits()); }

// What the smaller limits make impossible.
Status StrictEndpoint::refusal(const WorkRequest& request) const noexcept {
  if (request.segments.size() > least_segments) return Status::invalid_argument;
  if (has(request.flags, Flags::inline_data) && decorator::total_length(request.segments) > least_inline) {
    return Status::too_big;
  }
  return Status::ok;
}

// The request would be taken, as far as can be told from here: `again` is no answer to one that never would
// (OPS-1).
bool StrictEndpoint::is_plainly_good(const WorkRequest& request) const {
  constexpr auto plain = Flags::unsignalled | Flags::with_immediate | Flags::fence;
  if ((request.flags & plain) != request.flags) return false;
  const std::uint64_t length = decorator::total_length(request.segments);
  if (length > least_message) return false;
  const bool reads = request.operation == Operation::read;
  if (!decorator::are_good(context_.regions(), request.segments,
                           reads ? Access::local_write : Access::none)) {
    return false;
  }
  if (request.operation == Operation::send) return true;
  const bool writes =
      request.operation == Operation::write || request.operation == Operation::write_with_immediate;
  if (!reads && !writes) return false;
  const auto key = keys_.find(request.remote.memory);
  return key && has(key->access, reads ? Access::remote_read : Access::remote_write) &&
         decorator::lies_inside(request.remote.offset, length, key->length);
}

// Only while a completion is still to come, after which the program can try again.
bool StrictEndpoint::is_full_now(const WorkRequest& request) const noexcept {
  if (outstanding_->load(std::memory_order_relaxed) == 0 || !context_.dice().one_in(full_posts)) return false;
  try {
    return is_plainly_good(request) && inner().post(nullptr, 0).status == Status::ok;
  } catch (...) {
    return false;
  }
}

PostResult StrictEndpoint::post(const WorkRequest* requests, std::size_t count) noexcept {
  if (context_.inert()) return inner().post(requests, count);
  // The batch up to the first request that this decorator answers itself goes on in one call.
  std::size_t most = 0;
  Status own = Status::ok;
  for (; most < count && own == Status::ok; ++most) {
    own = refusal(requests[most]);
    if (own == Status::ok && is_full_now(requests[most])) own = Status::again;
    if (own != Status::ok) break;
  }
  // Counted before anybody can take a completion.
  std::uint64_t signalled = 0;
  for (std::size_t i = 0; i < most; ++i) {
    if (!has(requests[i].flags, Flags::unsignalled)) ++signalled;
  }
  outstanding_->fetch_add(signalled, std::memory_order_relaxed);
  PostResult result = inner().post(requests, most);
  for (std::size_t i = result.accepted; i < most; ++i) {
    if (!has(requests[i].flags, Flags::unsignalled)) outstanding_->fetch_sub(1, std::memory_order_relaxed);
  }
  // An endpoint that has ended, or is not up yet, answers so whatever the request is.
  if (result.status == Status::ok && result.accepted == most) result.status = own;
  return result;
}

PostResult StrictEndpoint::post_receives(const ReceiveRequest* requests, std::size_t count) noexcept {
  const std::size_t most = few_segments(requests, count);
  PostResult result = inner().post_receives(requests, most);
  if (result.status == Status::ok && most < count) result.status = Status::invalid_argument;
  return result;
}

provider::Endpoint::Imported StrictEndpoint::import_key(std::span<const std::byte> key) {
  const Imported imported = inner().import_key(key);
  keys_.add(imported.token, {imported.length, imported.access});
  return imported;
}

void StrictEndpoint::release_key(std::uint64_t token) noexcept {
  keys_.remove(token);
  inner().release_key(token);
}

}  // namespace weft::strict
