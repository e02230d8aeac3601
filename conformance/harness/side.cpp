#include "harness/side.hpp"

#include <algorithm>
#include <array>

namespace conformance {

using weft::Completion;
using weft::Operation;
using weft::Status;

void Completions::wait(Duration time) {
  std::array<Completion, 64> room;
  for (const Completion& completion : queue_.wait(room, std::clamp<Duration>(time, 0ms, 50ms))) {
    kept_.push_back(completion);
  }
}

void Completions::collect() {
  std::array<Completion, 64> room;
  for (const Completion& completion : queue_.poll(room)) kept_.push_back(completion);
}

std::size_t Completions::kept_of(Operation operation) const {
  return static_cast<std::size_t>(std::count_if(
      kept_.begin(), kept_.end(), [&](const Completion& c) { return c.operation == operation; }));
}

Completion Completions::first(const Wanted& wanted, Duration time, const std::string& what) {
  const Deadline deadline(time);
  while (true) {
    const auto found = std::find_if(kept_.begin(), kept_.end(), wanted);
    if (found != kept_.end()) {
      const Completion completion = *found;
      kept_.erase(found);
      return completion;
    }
    if (deadline.passed()) {
      REQUIRE(found != kept_.end()) << what << " did not come in time; what came instead: "
                                    << list({kept_.begin(), kept_.end()});
    }
    wait(deadline.left());
  }
}

Completion Completions::next(Duration time) {
  return first([](const Completion&) { return true; }, time, "a completion");
}

std::vector<Completion> Completions::take(std::size_t count, Duration time) {
  const Deadline deadline(time);
  while (kept_.size() < count && !deadline.passed()) wait(deadline.left());
  REQUIRE_GE(kept_.size(), count) << "completions did not come in time; what came: "
                                  << list({kept_.begin(), kept_.end()});
  const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Completion> taken(kept_.begin(), end);
  kept_.erase(kept_.begin(), end);
  return taken;
}

Completion Completions::next_of(Operation operation, Duration time) {
  return first([&](const Completion& c) { return c.operation == operation; }, time,
               "the completion of a " + std::string(to_string(operation)));
}

Completion Completions::next_of(Operation operation, const weft::Endpoint& endpoint, Duration time) {
  const std::uint32_t id = endpoint.id();
  return first(
      [&](const Completion& c) { return c.operation == operation && c.endpoint_id == id; }, time,
      "the completion of a " + std::string(to_string(operation)) + " of endpoint " + std::to_string(id));
}

std::vector<Completion> Completions::until_ended(const weft::Endpoint& endpoint, Duration time) {
  const std::uint32_t id = endpoint.id();
  const Deadline deadline(time);
  std::vector<Completion> taken;
  while (taken.empty() || taken.back().operation != Operation::endpoint_ended) {
    const std::string so_far = list(taken);
    taken.push_back(first([&](const Completion& c) { return c.endpoint_id == id; }, deadline.left(),
                          "endpoint_ended of endpoint " + std::to_string(id) + " after " + so_far));
  }
  return taken;
}

std::vector<Completion> Completions::all_within(Duration time) {
  // Plain time: a stall of the machine is no reason to wait longer for nothing.
  const auto end = Clock::now() + time;
  for (Duration left = time; left.count() > 0; left = end - Clock::now()) wait(left);
  std::vector<Completion> all(kept_.begin(), kept_.end());
  kept_.clear();
  return all;
}

std::string host_of(const weft::Context& context) {
  const std::string& address = context.attributes().local_address;
  if (address.empty() || address == "any") return "127.0.0.1";
  return address.find(':') == std::string::npos ? address : '[' + address + ']';
}

weft::ConnectionRequest next_request(Completions& completions, weft::Listener& listener, Duration time) {
  const Completion arrival = completions.next_of(Operation::connection_request, time);
  CHECK_EQ(arrival.status, Status::ok);
  std::optional<weft::ConnectionRequest> request = listener.next();
  REQUIRE(request.has_value()) << "a connection_request was reported, but the listener has none";
  return *request;
}

weft::Endpoint accept_one(Side& side, Channel& control, SideOptions options) {
  control.send(side.listener.address());
  weft::ConnectionRequest request = next_request(side.completions, side.listener);
  options.endpoint.queue = side.completions.queue();
  weft::Endpoint endpoint = request.prepare(options.endpoint);
  if (options.prepared) options.prepared(side.context, endpoint);
  request.accept();
  return endpoint.wait_up(patience);
}

weft::Endpoint connect_one(Side& side, Channel& control, SideOptions options) {
  const std::string address = control.receive();
  options.endpoint.queue = side.completions.queue();
  weft::Endpoint endpoint = side.context.connect(address, options.endpoint);
  if (options.prepared) options.prepared(side.context, endpoint);
  return endpoint.wait_up(patience);
}

Side accept_side(const Test& test, Channel& control, SideOptions options) {
  Side side;
  side.context = test.open_context(options.peer_timeout);
  side.completions = Completions(side.context.create_completion_queue({.capacity = options.capacity}));
  weft::ListenOptions listen;
  listen.queue = side.completions.queue();
  const std::string host = options.host.empty() ? host_of(side.context) : options.host;
  side.listener = side.context.listen(host + ":0", listen);
  side.endpoint = accept_one(side, control, std::move(options));
  return side;
}

Side connect_side(const Test& test, Channel& control, SideOptions options) {
  Side side;
  side.context = test.open_context(options.peer_timeout);
  side.completions = Completions(side.context.create_completion_queue({.capacity = options.capacity}));
  side.endpoint = connect_one(side, control, std::move(options));
  return side;
}

Loop make_loop(const Test& test, SideOptions options) {
  Loop loop;
  loop.context = test.open_context(options.peer_timeout);
  loop.near = Completions(loop.context.create_completion_queue({.capacity = options.capacity}));
  loop.far = Completions(loop.context.create_completion_queue({.capacity = options.capacity}));
  weft::ListenOptions listen;
  listen.queue = loop.far.queue();
  loop.listener = loop.context.listen(host_of(loop.context) + ":0", listen);
  options.endpoint.queue = loop.near.queue();
  loop.near_endpoint = loop.context.connect(loop.listener.address(), options.endpoint);
  weft::ConnectionRequest request = next_request(loop.far, loop.listener);
  options.endpoint.queue = loop.far.queue();
  loop.far_endpoint = request.prepare(options.endpoint);
  if (options.prepared) options.prepared(loop.context, loop.far_endpoint);
  request.accept();
  loop.near_endpoint.wait_up(patience);
  loop.far_endpoint.wait_up(patience);
  return loop;
}

void check_ping(weft::Context& context, weft::Endpoint& from, Completions& from_completions,
                weft::Endpoint& to, Completions& to_completions) {
  constexpr std::size_t size = 100;
  const GuardedBuffer source(size);
  const GuardedBuffer target(size);
  source.fill(from.id());
  target.poison();
  weft::MemoryRegion source_region = context.register_memory(source.bytes(), weft::Access::none);
  weft::MemoryRegion target_region = context.register_memory(target.bytes(), weft::Access::local_write);
  REQUIRE_EQ(to.receive(target_region.whole(), 0x7069), Status::ok);
  REQUIRE_EQ(from.send(source_region.whole(), 0x706f), Status::ok);
  const Completion received = to_completions.next_of(Operation::receive, to);
  CHECK_EQ(received.status, Status::ok);
  CHECK_EQ(received.context, 0x7069);
  CHECK_EQ(received.bytes, size);
  CHECK_EQ(target.difference(from.id()), "");
  const Completion sent = from_completions.next_of(Operation::send, from);
  CHECK_EQ(sent.status, Status::ok);
  CHECK_EQ(sent.context, 0x706f);
}

}  // namespace conformance
