#include "weft_link.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <stdexcept>

#include "shape.hpp"

namespace weft::native {
namespace {

constexpr std::chrono::seconds connect_time{10};

ContextOptions context_options(const Options& options) {
  ContextOptions result;
  result.provider = "verbs";
  if (!options.device.empty()) result.provider += ":" + options.device;
  if (!options.device.empty() && options.gid_index >= 0)
    result.provider += "/1/" + std::to_string(options.gid_index);
  result.thread_mode = options.threads == "single" ? ThreadMode::single : ThreadMode::safe;
  return result;
}

weft::Operation operation_of(Operation operation) {
  switch (operation) {
    case Operation::send:
      return weft::Operation::send;
    case Operation::write:
      return weft::Operation::write;
    case Operation::read:
      return weft::Operation::read;
    case Operation::write_with_immediate:
      return weft::Operation::write_with_immediate;
    case Operation::fetch_add:
      return weft::Operation::fetch_add;
  }
  return weft::Operation::send;
}

// Carried to the peer as it is.
struct Address {
  std::array<char, 64> text{};
};

}  // namespace

WeftLink::Device::Device(const Options& options)
    : context(Context::open(context_options(options))), name(context.attributes().device) {}

WeftLink::WeftLink(Device& device, Exchange& exchange, const Work& work, bool initiator)
    : LinkMemory(work),
      exchange_(exchange),
      context_(device.context),
      operation_(work.operation),
      receive_depth_(receive_depth_of(work)) {
  queue_ = device.context.create_completion_queue({.capacity = work.queue_depth() + receive_depth_});
  region_ = device.context.register_memory(
      memory_.get(), 2 * half_size_,
      Access::local_write | Access::remote_write | Access::remote_read | Access::remote_atomic);
  receive_segment_ = region_.slice(half_size_, half_size_);
  for (ReceiveRequest& request : receive_requests_) request.segments = {&receive_segment_, 1};
  EndpointOptions options;
  options.queue = queue_;
  options.send_depth = work.queue_depth();
  options.receive_depth = receive_depth_;
  options.max_inline = inline_limit;
  options.private_data = region_.key();
  options.timeout = connect_time;
  connect(device, options, initiator);
  const Limits limits = endpoint_.limits();
  if (limits.send_depth < work.queue_depth() || limits.receive_depth < receive_depth_) {
    throw std::runtime_error("the endpoint has " + std::to_string(limits.send_depth) + " sends and " +
                             std::to_string(limits.receive_depth) + " receives instead of " +
                             std::to_string(work.queue_depth()) + " and " + std::to_string(receive_depth_));
  }
  if (!answers_itself(work.operation) && size_ <= std::min<std::uint64_t>(inline_limit, limits.max_inline))
    inline_flag_ = Flags::inline_data;
}

WeftLink::~WeftLink() {
  try {
    if (endpoint_) endpoint_.abort();
  } catch (const Error&) {
    // It is ending anyway.
  }
}

void WeftLink::connect(Device& device, const EndpointOptions& options, bool initiator) {
  if (initiator) {
    const Address address = exchange_.swap(Address{});
    endpoint_ = device.context.connect(address.text.data(), options);
    endpoint_.wait_up(connect_time);
    remote_ = endpoint_.import_memory(endpoint_.peer_private_data());
    exchange_.meet();
    return;
  }
  Listener listener = device.context.listen("127.0.0.1:0", {.queue = queue_});
  Address address;
  const std::string text = listener.address();
  std::copy_n(text.begin(), std::min(text.size(), address.text.size() - 1), address.text.begin());
  exchange_.swap(address);
  const auto deadline = std::chrono::steady_clock::now() + connect_time;
  std::optional<ConnectionRequest> request;
  while (!(request = listener.next())) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("the other side did not connect");
    static_cast<void>(queue_.wait(completions_, std::chrono::milliseconds(100)));
  }
  endpoint_ = request->accept(options);
  endpoint_.wait_up(connect_time);
  remote_ = endpoint_.import_memory(request->private_data());
  exchange_.meet();
}

void WeftLink::prepare(Request& request, Place& place, std::uint64_t sequence) const {
  const std::uint64_t offset = slot_offset(sequence);
  place = inline_flag_ == Flags::none ? region_.slice(offset, size_)
                                      : Segment::inline_bytes(memory_.get() + offset, size_);
  request = {};
  request.operation = operation_of(operation_);
  request.segments = {&place, 1};
  request.operand = 1;
  // What the peer receives to is also what is written to and read; one counter, so that the sum can be
  // checked.
  if (operation_ != Operation::send)
    request.remote = remote_.at(half_size_ + (operation_ == Operation::fetch_add ? 0 : offset));
}

Counts WeftLink::counts() const {
  Counts counts;
  for (const Counter& counter : context_.counters()) {
    if (counter.name == "doorbells") counts.doorbells = counter.value;
    if (counter.name == "signals") counts.signals = counter.value;
  }
  return counts;
}

void WeftLink::fail(const Completion& completion) const {
  exchange_.check_peer();  // a flushed queue usually means that the peer went first
  throw std::runtime_error(
      "request " + std::to_string(completion.context) + " (" + std::string(to_string(completion.operation)) +
      ") failed: " + std::string(to_string(completion.status)) + "; " + endpoint_.describe_end());
}

void WeftLink::fail(const char* what, Status status) const {
  throw std::runtime_error(std::string(what) + ": " + std::string(to_string(status)) + "; " +
                           endpoint_.describe_end());
}

}  // namespace weft::native
