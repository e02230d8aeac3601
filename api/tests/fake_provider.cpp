#include "fake_provider.hpp"

#include <cstring>

#include "objects/context_core.hpp"
#include "objects/opener.hpp"

namespace weft::test {

namespace {

std::recursive_mutex& lock() {
  static auto* const mutex = new std::recursive_mutex;
  return *mutex;
}
using Guard = std::lock_guard<std::recursive_mutex>;

std::map<std::uint64_t, FakeEndpoint*>& by_number() {
  static auto* const map = new std::map<std::uint64_t, FakeEndpoint*>;
  return *map;
}
std::map<std::uint64_t, std::byte*>& regions() {
  static auto* const map = new std::map<std::uint64_t, std::byte*>;
  return *map;
}
std::map<std::uint32_t, FakeEndpoint*>& region_users() {
  static auto* const map = new std::map<std::uint32_t, FakeEndpoint*>;
  return *map;
}
std::uint64_t next_number = 0;
std::atomic<int> objects{0};

std::byte* address_of(const Segment& segment) {
  if (segment.region == 0) return reinterpret_cast<std::byte*>(segment.offset);
  return regions().at(segment.region) + segment.offset;
}

}  // namespace

int fake_objects() { return objects; }

FakeQueue::~FakeQueue() {
  --objects;
  if (users != 0) std::abort();  // the core's order of destruction is part of the interface
}

std::size_t FakeQueue::poll(Completion* out, std::size_t room) noexcept {
  const Guard guard(lock());
  std::size_t count = 0;
  for (; count < room && !entries.empty(); ++count) {
    out[count] = entries.front();
    entries.pop_front();
  }
  return count;
}

bool FakeQueue::arm() noexcept {
  const Guard guard(lock());
  armed_ = entries.empty();
  return armed_;
}

void FakeQueue::put(const Completion& completion) {
  entries.push_back(completion);
  if (std::exchange(armed_, false)) events_.readable();
}

FakeRegion::FakeRegion(const RegistrationRequest& request) {
  const Guard guard(lock());
  token_ = ++next_number;
  regions()[token_] = static_cast<std::byte*>(request.address);
  ++objects;
}

FakeRegion::~FakeRegion() { --objects; }

Status FakeRegion::deregister() noexcept {
  const Guard guard(lock());
  if (!region_users().empty()) return Status::busy;
  regions().erase(token_);
  return Status::ok;
}

void FakeRegion::collect_users(std::vector<std::uint32_t>& endpoint_ids) {
  const Guard guard(lock());
  for (const auto& [id, endpoint] : region_users()) endpoint_ids.push_back(id);
}

FakeEndpoint::FakeEndpoint(FakeContext& context, const provider::EndpointRequest& request)
    : context_(context), request_(request) {
  const Guard guard(lock());
  ++objects;
  number_ = ++next_number;
  by_number()[number_] = this;
  context_.endpoints[request_.id] = this;
  limits_ = context_.attributes().limits;
  limits_.send_depth = request.send_depth;
  limits_.receive_depth = request.receive_depth;
  ++dynamic_cast<FakeQueue&>(*request_.send_queue).users;
  ++dynamic_cast<FakeQueue&>(*request_.receive_queue).users;
}

FakeEndpoint::~FakeEndpoint() {
  const Guard guard(lock());
  --objects;
  by_number().erase(number_);
  context_.endpoints.erase(request_.id);
  region_users().erase(request_.id);
  --dynamic_cast<FakeQueue&>(*request_.send_queue).users;
  --dynamic_cast<FakeQueue&>(*request_.receive_queue).users;
  if (peer_number_ != 0 && !finished_) std::abort();  // destroyed before finished()
}

std::vector<std::byte> FakeEndpoint::blob(const provider::PathAddresses& path) {
  if (path.local.empty() || path.peer.empty()) throw Error(Status::system_error, "no addresses");
  std::vector<std::byte> bytes(sizeof number_);
  std::memcpy(bytes.data(), &number_, sizeof number_);
  return bytes;
}

bool FakeEndpoint::establish(const provider::PeerParameters& peer) {
  const Guard guard(lock());
  if (context_.behaviour.establish_error) throw Error(*context_.behaviour.establish_error, "made to fail");
  if (peer.blob.size() != sizeof peer_number_) throw Error(Status::protocol, "bad blob");
  std::memcpy(&peer_number_, peer.blob.data(), sizeof peer_number_);
  limits_ = peer.limits;
  peer_parameters = peer;
  peer_parameters.blob = {};
  peer_parameters.path = {};
  if (!context_.behaviour.establishes_later) return true;
  context_.to_establish.push_back(request_.id);
  context_.events.request_service();
  return false;
}

void FakeEndpoint::go_up() noexcept {
  const Guard guard(lock());
  up_ = was_up_ = true;
  connect_reported_ = true;
  complete(request_.receive_queue, Operation::connect, 0, Status::ok, 0);
  match();
}

bool FakeEndpoint::withdraw_connect_report() noexcept {
  const Guard guard(lock());
  auto& entries = dynamic_cast<FakeQueue&>(*request_.receive_queue).entries;
  return std::erase_if(entries, [this](const Completion& c) {
           return c.operation == Operation::connect && c.endpoint_id == request_.id;
         }) != 0;
}

void FakeEndpoint::complete(provider::CompletionQueue* queue, Operation operation, std::uint64_t context,
                            Status status, std::uint64_t bytes) {
  if (silenced_) return;
  Completion completion;
  completion.operation = operation;
  completion.context = context;
  completion.status = status;
  completion.bytes = bytes;
  completion.endpoint_id = request_.id;
  completion.user_value = request_.user_value;
  dynamic_cast<FakeQueue*>(queue)->put(completion);
}

PostResult FakeEndpoint::post(const WorkRequest* requests, std::size_t count) noexcept {
  const Guard guard(lock());
  if (context_.inert || ended_ || closing_) return {Status::not_connected, 0};
  if (!up_) return {Status::again, 0};
  for (std::size_t i = 0; i < count; ++i) {
    if (requests[i].operation != Operation::send) return {Status::unsupported, i};
    Message message;
    for (const Segment& segment : requests[i].segments) {
      const std::byte* from = address_of(segment);
      message.bytes.insert(message.bytes.end(), from, from + segment.length);
    }
    if (has(requests[i].flags, Flags::with_immediate)) message.immediate = requests[i].immediate;
    ++sent_;
    const std::uint64_t bytes = message.bytes.size();
    const auto peer = by_number().find(peer_number_);
    if (peer != by_number().end()) peer->second->deliver(std::move(message));
    if (!has(requests[i].flags, Flags::unsignalled)) {
      complete(request_.send_queue, Operation::send, requests[i].context, Status::ok, bytes);
    }
  }
  return {Status::ok, count};
}

PostResult FakeEndpoint::post_receives(const ReceiveRequest* requests, std::size_t count) noexcept {
  const Guard guard(lock());
  if (context_.inert || ended_ || closing_) return {Status::not_connected, 0};
  for (std::size_t i = 0; i < count; ++i) {
    receives_.emplace_back(requests[i].context,
                           std::vector<Segment>(requests[i].segments.begin(), requests[i].segments.end()));
  }
  match();
  return {Status::ok, count};
}

void FakeEndpoint::deliver(Message message) {
  unexpected_.push_back(std::move(message));
  match();
}

void FakeEndpoint::match() {
  while (up_ && !ended_ && !failed_ && !receives_.empty() && !unexpected_.empty()) {
    auto [context, segments] = receives_.front();
    Message message = std::move(unexpected_.front());
    receives_.pop_front();
    unexpected_.pop_front();
    std::uint64_t room = 0;
    for (const Segment& segment : segments) room += segment.length;
    if (room < message.bytes.size()) {
      complete(request_.receive_queue, Operation::receive, context, Status::truncated, 0);
      return fail(Status::truncated, matched_);
    }
    std::size_t done = 0;
    for (const Segment& segment : segments) {
      const std::size_t piece = std::min<std::size_t>(segment.length, message.bytes.size() - done);
      if (piece != 0) std::memcpy(address_of(segment), message.bytes.data() + done, piece);
      done += piece;
    }
    ++matched_;
    complete(request_.receive_queue, Operation::receive, context, Status::ok, message.bytes.size());
  }
  if (waits_messages_ && matched_ >= last_order.messages) finish();
}

FakeEndpoint::Imported FakeEndpoint::import_key(std::span<const std::byte>) {
  throw Error(Status::invalid_argument, "the fake has no keys");
}

void FakeEndpoint::release_key(std::uint64_t) noexcept {}

void FakeEndpoint::drain() noexcept {
  const Guard guard(lock());
  closing_ = true;
  if (!context_.behaviour.never_drains) request_.events->drained(sent_);
}

void FakeEndpoint::end(const provider::EndOrder& order) noexcept {
  const Guard guard(lock());
  if (finished_ || context_.behaviour.never_finishes) return;
  last_order = order;
  waits_messages_ = order.after_messages && matched_ < order.messages;
  if (!waits_messages_) finish();
}

void FakeEndpoint::finish() {
  if (finished_) return;
  waits_messages_ = false;
  ended_ = finished_ = true;
  for (const auto& [context, segments] : receives_) {
    complete(request_.receive_queue, Operation::receive, context, Status::cancelled, 0);
  }
  receives_.clear();
  if (was_up_) complete(request_.receive_queue, Operation::endpoint_ended, 0, last_order.cause, 0);
  region_users().erase(request_.id);
  request_.events->finished();
}

void FakeEndpoint::silence() noexcept {
  const Guard guard(lock());
  silenced_ = true;
  for (auto* queue : {request_.send_queue, request_.receive_queue}) {
    std::erase_if(dynamic_cast<FakeQueue*>(queue)->entries,
                  [this](const Completion& c) { return c.endpoint_id == request_.id; });
  }
}

void FakeEndpoint::use_regions() {
  const Guard guard(lock());
  region_users()[request_.id] = this;
}

void FakeEndpoint::fail(Status cause, std::uint64_t detail) {
  const Guard guard(lock());
  if (std::exchange(failed_, true)) return;
  request_.events->failed(cause, detail, 77, "made to fail");
}

namespace {

class FakeReceiveQueue final : public provider::ReceiveQueue {
 public:
  FakeReceiveQueue() { ++objects; }
  ~FakeReceiveQueue() override { --objects; }
  PostResult post(const ReceiveRequest*, std::size_t count) noexcept override { return {Status::ok, count}; }
  void set_low_water(std::uint32_t) noexcept override {}
};

}  // namespace

FakeContext::FakeContext(FakeBehaviour how, provider::ContextEvents& context_events)
    : behaviour(std::move(how)), events(context_events) {
  ++objects;
  attributes_.device = behaviour.name + "0";
  attributes_.local_address = behaviour.local_address;
  attributes_.met_there_only = behaviour.met_there_only;
  attributes_.limits = {.max_message = 1 << 20,
                        .max_transfer = std::uint64_t{1} << 40,
                        .max_inline = 64,
                        .max_segments = 4,
                        .send_depth = 65'536,
                        .receive_depth = 65'536,
                        .max_outstanding_reads = 16,
                        .unexpected_bytes = 1 << 20};
}

FakeContext::~FakeContext() {
  --objects;
  if (!endpoints.empty() && !inert) std::abort();
}

std::unique_ptr<provider::CompletionQueue> FakeContext::create_completion_queue(
    std::uint32_t, provider::QueueEvents& queue_events) {
  ++objects;
  return std::make_unique<FakeQueue>(queue_events);
}

std::unique_ptr<provider::ReceiveQueue> FakeContext::create_receive_queue(provider::CompletionQueue&,
                                                                          std::uint32_t, std::uint64_t) {
  return std::make_unique<FakeReceiveQueue>();
}

std::unique_ptr<provider::MemoryRegion> FakeContext::register_memory(const RegistrationRequest& request) {
  return std::make_unique<FakeRegion>(request);
}

std::unique_ptr<provider::Endpoint> FakeContext::prepare_endpoint(const provider::EndpointRequest& request) {
  return std::make_unique<FakeEndpoint>(*this, request);
}

FakeContext::Clock::time_point FakeContext::service(Clock::time_point) noexcept {
  const Guard guard(lock());
  for (const std::uint32_t id : std::exchange(to_establish, {})) {
    if (FakeEndpoint* waiting = endpoint(id)) waiting->request_.events->established();
  }
  return Clock::time_point::max();
}

void FakeContext::enter_child() noexcept { inert = true; }

FakeEndpoint* FakeContext::endpoint(std::uint32_t id) {
  const Guard guard(lock());
  const auto found = endpoints.find(id);
  return found == endpoints.end() ? nullptr : found->second;
}

FakeOpen open_fake(FakeBehaviour behaviour, const ContextOptions& options) {
  auto bell = std::make_shared<core::ContextBell>();
  core::OpenedProvider opened;
  opened.name = behaviour.name;
  opened.version = "1.2.3";
  opened.peer_timeout = behaviour.peer_timeout;
  auto fake = std::make_unique<FakeContext>(std::move(behaviour), *bell);
  FakeContext* const raw = fake.get();
  opened.context = std::move(fake);
  return {core::Opener::make(core::open_context_with(std::move(bell), std::move(opened), options)), raw};
}

}  // namespace weft::test
