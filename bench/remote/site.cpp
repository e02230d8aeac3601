#include "site.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "pattern.hpp"

namespace perf::remote {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t control_size = 4096;
constexpr std::uint32_t control_receives = 16;
constexpr std::uint32_t control_sends = 8;
constexpr std::uint64_t control_value = ~std::uint64_t{0};
constexpr std::uint64_t ready = 1;

constexpr std::chrono::seconds connect_time{10};
constexpr std::chrono::milliseconds longest_sleep{100};
constexpr std::chrono::milliseconds short_sleep{1};
constexpr std::chrono::seconds last_word_time{2};

std::uint64_t slot_size(const Row& row) {
  return is_atomic(row.kind) ? 8 : std::max<std::uint64_t>(row.size, 1);
}

weft::Access target_access(Kind kind) {
  using enum weft::Access;
  if (kind == Kind::read) return local_write | remote_read;
  return is_atomic(kind) ? local_write | remote_atomic : local_write | remote_write;
}

}  // namespace

Site::Site(weft::Context& context, const Row& row, bool server)
    : row_(row),
      server_(server),
      slots_(slots_of(row)),
      receives_(receives_of(row)),
      recycle_batch_(std::clamp(receives_ / 4, 1U, 32U)),
      sources_(slot_size(row), std::size_t{slots_} * row.endpoints),
      target_(slot_size(row), std::size_t{slots_} * row.endpoints),
      received_(fills_receive(row.kind) ? slot_size(row) : 1,
                std::max<std::size_t>(std::size_t{receives_} * row.endpoints, 1)),
      control_memory_(control_size, control_receives + control_sends),
      queue_(context.create_completion_queue({.capacity = static_cast<std::uint32_t>(capacity_of(row))})),
      source_region_(context.register_memory(sources_.bytes(), weft::Access::local_write)),
      target_region_(context.register_memory(target_.bytes(), target_access(row.kind))),
      received_region_(context.register_memory(received_.bytes(), weft::Access::local_write)),
      control_region_(context.register_memory(control_memory_.bytes(), weft::Access::local_write)),
      lanes_(row.endpoints) {
  if (is_atomic(row.kind)) std::ranges::fill(target_.bytes(), std::byte{0});
  if (row.kind == Kind::read && row.check) {
    for (std::uint32_t lane = 0; lane < row.endpoints; ++lane) {
      for (std::uint32_t slot = 0; slot < slots_; ++slot) {
        write_pattern({target_.slot(place_of(lane, slot)), row.size}, {server, lane}, slot);
      }
    }
  }
  receive_requests_.reserve(receives_);
  receive_segments_.reserve(receives_);
}

Site::~Site() {
  try {
    for (Lane& lane : lanes_) {
      if (lane.endpoint) lane.endpoint.abort();
    }
    if (control_) control_.close(last_word_time);
  } catch (const weft::Error&) {
    // It is ending anyway.
  }
}

weft::EndpointOptions Site::control_options(std::span<const std::byte> private_data) const {
  weft::EndpointOptions options;
  options.queue = queue_;
  options.user_value = control_value;
  options.send_depth = control_sends;
  options.receive_depth = control_receives;
  options.private_data = private_data;
  options.timeout = connect_time;
  return options;
}

weft::EndpointOptions Site::lane_options(std::uint32_t lane, std::span<const std::byte> private_data) const {
  weft::EndpointOptions options;
  options.queue = queue_;
  options.user_value = lane;
  options.send_depth = slots_ * requests_per_operation(row_.kind) + flush_room;
  options.receive_depth = std::max(receives_, 1U);
  options.private_data = private_data;
  options.timeout = connect_time;
  return options;
}

void Site::set_control(weft::Endpoint endpoint) {
  control_ = std::move(endpoint);
  for (std::uint32_t place = 0; place < control_receives; ++place) post_control_receive(place);
}

void Site::set_lane(std::uint32_t lane, weft::Endpoint endpoint) {
  lanes_[lane].endpoint = std::move(endpoint);
  post_receives(lanes_[lane], lane, 0, receives_);
}

void Site::complete_lanes(std::span<const std::byte> peer_key) {
  max_inline_ = ~0U;
  for (Lane& lane : lanes_) {
    lane.endpoint.wait_up(connect_time);
    lane.remote = lane.endpoint.import_memory(peer_key);
    max_inline_ = std::min(max_inline_, lane.endpoint.limits().max_inline);
    const std::uint64_t largest = lane.endpoint.limits().max_message;
    if (takes_receive(row_.kind) && row_.size > largest) {
      throw std::runtime_error(
          fmt::format("{} of {} bytes: the largest message here is {}; take a smaller -s",
                      to_string(row_.kind), row_.size, largest));
    }
  }
}

void Site::post_control_receive(std::uint64_t place) {
  const weft::Status status =
      control_.receive(control_region_.slice(place * control_size, control_size), place);
  if (status != weft::Status::ok && status != weft::Status::not_connected) {
    throw std::runtime_error(fmt::format("posting a receive: {}", weft::to_string(status)));
  }
}

void Site::tell(const Json& message) {
  const std::string text = message.dump();
  while (control_posted_ - control_completed_ >= control_sends) take(true);
  const std::uint64_t place = control_receives + control_posted_ % control_sends;
  const std::size_t length = std::min(text.size(), control_size);
  std::memcpy(control_memory_.slot(place), text.data(), length);
  for (;;) {
    const weft::Status status = control_.send(control_region_.slice(place * control_size, length), ready);
    if (status == weft::Status::ok) break;
    if (status != weft::Status::again) throw PeerProblem(printable(control_.describe_end()));
    take(true);
  }
  ++control_posted_;
}

std::optional<Json> Site::hear() {
  if (heard_.empty()) return std::nullopt;
  const std::string text = std::move(heard_.front());
  heard_.pop_front();
  Json message = parse_object(bytes_of(text));
  if (message.contains("problem")) throw PeerProblem(printable(text_of(message, "problem")));
  return message;
}

Json Site::await(std::chrono::seconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  for (;;) {
    if (auto message = hear()) return *message;
    if (Clock::now() > deadline) throw PeerProblem(fmt::format("it said nothing for {} s", limit.count()));
    const weft::Polled polled = queue_.wait(entries_, longest_sleep);
    for (const weft::Completion& completion : polled) handle(completion);
  }
}

void Site::tell_problem(const std::string& text) noexcept {
  try {
    tell({{"weft_perf", wire_version}, {"problem", printable(text)}});
    const Clock::time_point deadline = Clock::now() + last_word_time;
    while (control_completed_ < control_posted_ && Clock::now() < deadline) {
      for (const weft::Completion& completion : queue_.wait(entries_, longest_sleep)) {
        if (completion.user_value == control_value) handle_control(completion);
      }
    }
  } catch (const std::exception&) {
    // It is gone; then it need not know.
  }
}

void Site::say_goodbye() {
  tell({{"weft_perf", wire_version}, {"end", true}});
  const Clock::time_point deadline = Clock::now() + last_word_time;
  while (Clock::now() < deadline) {
    for (const weft::Completion& completion : queue_.wait(entries_, longest_sleep)) {
      if (completion.user_value == control_value && completion.operation == weft::Operation::endpoint_ended)
        return;
    }
  }
}

void Site::limit(std::chrono::seconds time) {
  limit_ = time;
  limit_ends_ = std::chrono::steady_clock::now() + time;
}

void Site::take(bool sleepy) {
  // Looking at the clock each time would be part of what is measured.
  constexpr std::uint64_t looks_apart = 4096;
  if (++takes_ % looks_apart == 0 || (sleepy && row_.events)) {
    if (std::chrono::steady_clock::now() > limit_ends_)
      throw PeerProblem(fmt::format("it did not bring the row to its end within {} s", limit_.count()));
  }
  const weft::Polled polled =
      sleepy && row_.events ? queue_.wait(entries_, longest_sleep) : queue_.poll(entries_);
  for (const weft::Completion& completion : polled) handle(completion);
  if (polled.reason() == weft::Polled::Reason::failed) [[unlikely]]
    throw std::runtime_error("the completion queue is not usable any more");
}

void Site::handle(const weft::Completion& completion) {
  if (completion.user_value == control_value) [[unlikely]]
    return handle_control(completion);
  if (completion.status != weft::Status::ok) [[unlikely]]
    fail(completion);
  const auto index = static_cast<std::uint32_t>(completion.user_value);
  Lane& lane = lanes_[index];
  if (completion.operation == weft::Operation::receive) {
    handle_arrival(lane, index, completion);
  } else {
    lane.completed = std::max(lane.completed, completion.context);
  }
}

void Site::handle_control(const weft::Completion& completion) {
  if (completion.status != weft::Status::ok || completion.operation == weft::Operation::endpoint_ended)
    fail(completion);
  if (completion.operation == weft::Operation::receive) {
    const auto* const text = reinterpret_cast<const char*>(control_memory_.slot(completion.context));
    heard_.emplace_back(text, completion.bytes);
    constexpr std::size_t most_unheard = 16;
    if (heard_.size() > most_unheard) throw PeerProblem("it talks without waiting for answers");
    post_control_receive(completion.context);
  } else if (completion.operation == weft::Operation::send) {
    ++control_completed_;
  }
}

void Site::handle_arrival(Lane& lane, std::uint32_t index, const weft::Completion& completion) {
  const std::uint64_t number = lane.arrived++;
  ++arrived_;
  const bool as_sent =
      completion.bytes == row_.size && completion.has_immediate == has_immediate(row_.kind) &&
      (!completion.has_immediate || completion.immediate == static_cast<std::uint32_t>(number));
  if (!as_sent) [[unlikely]] {
    throw std::runtime_error(
        fmt::format("message {} of endpoint {} came with {} bytes and immediate {}, not as sent", number,
                    index, completion.bytes, completion.immediate));
  }
  if (row_.check) {
    const Author author{!server_, index};
    if (fills_receive(row_.kind)) {
      const std::uint64_t place = std::uint64_t{index} * receives_ + completion.context % receives_;
      check_pattern({received_.slot(place), row_.size}, author, number);
    } else if (is_ping_pong(row_)) {
      // In a stream the next write may already be on its way to the same place; that is looked at in the end.
      check_pattern({target_.slot(place_of(index, number)), row_.size}, author, number);
    }
  }
  recycle(lane, false);
}

void Site::recycle(Lane& lane, bool all) {
  const std::uint64_t open = lane.arrived - lane.reposted;
  if (open == 0 || (open < recycle_batch_ && !all)) return;
  post_receives(lane, static_cast<std::uint32_t>(&lane - lanes_.data()), lane.reposted, open);
  lane.reposted += open;
}

void Site::post_receives(Lane& lane, std::uint32_t index, std::uint64_t from, std::uint64_t count) {
  receive_requests_.clear();
  receive_segments_.clear();
  for (std::uint64_t number = from; number < from + count; ++number) {
    weft::ReceiveRequest request{.context = number, .segments = {}};
    if (fills_receive(row_.kind) && row_.size > 0) {
      const std::uint64_t place = std::uint64_t{index} * receives_ + number % receives_;
      receive_segments_.push_back(received_region_.slice(received_.offset(place), row_.size));
      request.segments = {&receive_segments_.back(), 1};  // it has its room reserved and does not move
    }
    receive_requests_.push_back(request);
  }
  const weft::PostResult result = lane.endpoint.post_receives(receive_requests_);
  // As many were taken as are posted again: there is room. An endpoint that has ended says so by itself.
  if (result.status != weft::Status::ok && result.status != weft::Status::not_connected) {
    throw std::runtime_error(fmt::format("posting {} receives: {}", count, weft::to_string(result.status)));
  }
}

void Site::post(Lane& lane, std::span<const weft::WorkRequest> requests) {
  for (;;) {
    const weft::PostResult result = lane.endpoint.post(requests);
    if (result.status == weft::Status::ok) return;
    if (result.status == weft::Status::not_connected)
      throw PeerProblem(printable(lane.endpoint.describe_end()));
    if (result.status != weft::Status::again) [[unlikely]] {
      throw std::runtime_error(fmt::format("posting {} of {} bytes: {}", to_string(row_.kind), row_.size,
                                           weft::to_string(result.status)));
    }
    requests = requests.subspan(result.accepted);
    // Room may come without any completion, so nobody sleeps for long here.
    if (row_.events) {
      for (const weft::Completion& completion : queue_.wait(entries_, short_sleep)) handle(completion);
    } else {
      take(false);
    }
  }
}

void Site::fail(const weft::Completion& completion) {
  while (hear()) {
    // What the peer said about it explains more than what came of it.
  }
  const weft::Endpoint& endpoint = completion.user_value == control_value
                                       ? control_
                                       : lanes_[static_cast<std::size_t>(completion.user_value)].endpoint;
  const std::string cause = printable(endpoint.describe_end());
  throw PeerProblem(fmt::format("{} ended with '{}'{}{}", weft::to_string(completion.operation),
                                weft::to_string(completion.status), cause.empty() ? "" : ": ", cause));
}

}  // namespace perf::remote
