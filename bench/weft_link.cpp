#include "weft_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "role.hpp"

namespace perf {
namespace {

constexpr std::chrono::seconds connect_time{10};

// Enough to keep the post call rare, few enough that the queue never runs dry meanwhile.
std::uint64_t recycle_batch(std::uint32_t receive_slots) { return std::clamp(receive_slots / 4, 1U, 32U); }

// A context bound to one address is reached there, any other through loopback.
std::string listen_address(const weft::Attributes& attributes) {
  const std::string& local = attributes.local_address;
  if (local.empty() || local == "any") return "127.0.0.1:0";
  return local.find(':') == std::string::npos ? local + ":0" : fmt::format("[{}]:0", local);
}

}  // namespace

WeftLink::WeftLink(const LinkPlan& plan)
    : plan_(plan),
      receives_(plan.receive_size, plan.receive_slots),
      target_(std::max<std::size_t>(plan.target_size, 1), plan.target_slots),
      entries_{},
      recycle_batch_(recycle_batch(plan.receive_slots)) {
  weft::ContextOptions options;
  options.provider = plan.provider;
  context_ = weft::Context::open(options);
  queue_ = context_.create_completion_queue({.capacity = plan.send_depth + plan.receive_slots});
  receive_region_ = context_.register_memory(receives_.bytes(), weft::Access::local_write);
  if (plan.target_size > 0) {
    target_region_ = context_.register_memory(
        target_.bytes(), weft::Access::local_write | weft::Access::remote_read | weft::Access::remote_write);
  }
  for (std::uint32_t slot = 0; slot < plan.receive_slots; ++slot) {
    receive_segments_.push_back(receive_region_.slice(receives_.offset(slot), plan.receive_size));
  }
  receive_requests_.reserve(plan.receive_slots);
}

WeftLink::~WeftLink() {
  try {
    if (endpoint_) endpoint_.abort();
  } catch (const weft::Error&) {
    // It is ending anyway.
  }
}

weft::EndpointOptions WeftLink::endpoint_options() const {
  weft::EndpointOptions options;
  options.queue = queue_;
  options.send_depth = plan_.send_depth;
  options.receive_depth = plan_.receive_slots;
  if (target_region_) options.private_data = target_region_.key();
  options.timeout = connect_time;
  return options;
}

void WeftLink::listen() {
  listener_ = context_.listen(listen_address(context_.attributes()), {.queue = queue_});
}

void WeftLink::accept() {
  weft::ConnectionRequest request;
  const auto deadline = std::chrono::steady_clock::now() + connect_time;
  while (!request) {
    if (std::chrono::steady_clock::now() > deadline) fail("no client came", weft::Status::timed_out);
    for (const weft::Completion& completion : queue_.wait(entries_, std::chrono::milliseconds(100))) {
      if (completion.operation != weft::Operation::connection_request) fail(completion);
    }
    if (auto arrival = listener_.next()) request = std::move(*arrival);
  }
  const std::span<const std::byte> key = request.private_data();
  endpoint_ = request.prepare(endpoint_options());
  post_receives(plan_.receive_slots);
  request.accept();
  endpoint_.wait_up(connect_time);
  use_peer_key(key);
}

void WeftLink::connect(const std::string& address) {
  endpoint_ = context_.connect(address, endpoint_options());
  post_receives(plan_.receive_slots);
  endpoint_.wait_up(connect_time);
  use_peer_key(endpoint_.peer_private_data());
}

void WeftLink::use_peer_key(std::span<const std::byte> key) {
  if (!key.empty()) remote_ = endpoint_.import_memory(key);
  max_inline_ = endpoint_.limits().max_inline;
  recycled_ = 0;  // The receives posted so far are the first round, not repetitions.
}

std::string WeftLink::fabric() const {
  const weft::Attributes& attributes = context_.attributes();
  if (!attributes.fabric.empty() && attributes.fabric != attributes.provider) return attributes.fabric;
  return attributes.device.empty() || attributes.device == "any" ? "loopback" : attributes.device;
}

weft::MemoryRegion WeftLink::register_buffer(SlotBuffer& buffer) {
  return context_.register_memory(buffer.bytes(), weft::Access::local_write);
}

void WeftLink::post_receives(std::uint64_t count) {
  receive_requests_.clear();
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = recycled_ + i;
    receive_requests_.push_back({number, {&receive_segments_[number % plan_.receive_slots], 1}});
  }
  std::span<const weft::ReceiveRequest> requests = receive_requests_;
  while (!requests.empty()) {
    const weft::PostResult result = endpoint_.post_receives(requests);
    if (result.status != weft::Status::ok && result.status != weft::Status::again) {
      fail("post_receives", result.status);
    }
    requests = requests.subspan(result.accepted);
    if (!requests.empty()) poll();
  }
  recycled_ += count;
}

void WeftLink::send_inline(const void* bytes, std::size_t length) {
  const weft::Segment segment = weft::Segment::inline_bytes(bytes, length);
  weft::WorkRequest request;
  request.operation = weft::Operation::send;
  request.flags = weft::Flags::inline_data | weft::Flags::unsignalled;
  request.segments = {&segment, 1};
  post({&request, 1});
}

void WeftLink::send_word() {
  const std::uint64_t word = not_a_stamp;
  send_inline(&word, sizeof word);
}

void WeftLink::take_word() {
  check_stamp(take_message(), not_a_stamp);
  recycle();
}

void WeftLink::meet_as_client() {
  for (int round = 0; round < meeting_rounds; ++round) {
    send_word();
    take_word();
  }
}

void WeftLink::meet_as_server() {
  for (int round = 0; round < meeting_rounds; ++round) {
    take_word();
    send_word();
  }
}

void WeftLink::fail(const weft::Completion& completion) const {
  const std::string cause = endpoint_ ? endpoint_.describe_end() : std::string();
  throw std::runtime_error(fmt::format(
      "{} completed with '{}' (native code {}){}{}", weft::to_string(completion.operation),
      weft::to_string(completion.status), completion.native_code, cause.empty() ? "" : ": ", cause));
}

void WeftLink::fail(const std::string& what, weft::Status status) {
  throw std::runtime_error(fmt::format("{}: {}", what, weft::to_string(status)));
}

}  // namespace perf
