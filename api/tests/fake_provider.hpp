// A provider inside the process, for tests of the core: endpoints hand each other their messages under one
// lock, and tests can make them misbehave. It keeps no connection.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/context_bell.hpp"
#include "open_provider.hpp"
#include "weft/context.hpp"
#include "weft/provider/context.hpp"

namespace weft::test {

// How a context of the fake behaves; set before it is opened.
struct FakeBehaviour {
  std::string name = "fake";
  provider::Context::ProtocolRange protocol{1, 3};
  bool establishes_later = false;  // establish() answers false; established() follows at the next service
  bool never_drains = false;
  bool never_finishes = false;
  std::optional<Status> establish_error = std::nullopt;
  std::chrono::milliseconds peer_timeout{10'000};
  std::string local_address{};  // as its attributes tell it
  bool met_there_only = false;
};

class FakeContext;
class FakeEndpoint;

class FakeQueue final : public provider::CompletionQueue {
 public:
  explicit FakeQueue(provider::QueueEvents& events) : events_(events) {}
  ~FakeQueue() override;
  std::size_t poll(Completion* out, std::size_t room) noexcept override;
  [[nodiscard]] int descriptor() override { return -1; }
  [[nodiscard]] bool arm() noexcept override;

  // With the fake's lock held.
  void put(const Completion& completion);
  std::deque<Completion> entries;
  int users = 0;

 private:
  provider::QueueEvents& events_;
  bool armed_ = false;
};

class FakeRegion final : public provider::MemoryRegion {
 public:
  explicit FakeRegion(const RegistrationRequest& request);
  ~FakeRegion() override;
  [[nodiscard]] std::uint64_t token() const noexcept override { return token_; }
  [[nodiscard]] std::span<const std::byte> key() const noexcept override { return {}; }
  [[nodiscard]] AtomicScope atomic_scope() const noexcept override { return AtomicScope::none; }
  Status deregister() noexcept override;
  void collect_users(std::vector<std::uint32_t>& endpoint_ids) override;
  void cancel_shared_receives() noexcept override {}

 private:
  std::uint64_t token_ = 0;
};

class FakeEndpoint final : public provider::Endpoint {
 public:
  FakeEndpoint(FakeContext& context, const provider::EndpointRequest& request);
  ~FakeEndpoint() override;

  [[nodiscard]] std::vector<std::byte> blob(const provider::PathAddresses& path) override;
  [[nodiscard]] Limits limits() const noexcept override { return limits_; }
  bool establish(const provider::PeerParameters& peer) override;
  void go_up() noexcept override;
  bool withdraw_connect_report() noexcept override;
  PostResult post(const WorkRequest* requests, std::size_t count) noexcept override;
  PostResult post_receives(const ReceiveRequest* requests, std::size_t count) noexcept override;
  [[nodiscard]] Imported import_key(std::span<const std::byte> key) override;
  void release_key(std::uint64_t token) noexcept override;
  void drain() noexcept override;
  void end(const provider::EndOrder& order) noexcept override;
  void rung() noexcept override { ++rings; }
  void silence() noexcept override;

  // For tests: the data path fails; the peer is rung.
  void fail(Status cause, std::uint64_t detail = 0);
  void lose_path() { request_.events->failed(Status::peer_lost, 0, 0, "the path is gone"); }
  void use_regions();  // keeps every region busy until it ends
  void ring() { request_.events->ring_peer(); }
  [[nodiscard]] std::uint32_t id() const noexcept { return request_.id; }

  std::atomic<int> rings{0};
  provider::EndOrder last_order;
  provider::PeerParameters peer_parameters;

 private:
  friend class FakeContext;
  friend class FakeRegion;
  struct Message {
    std::vector<std::byte> bytes;
    std::optional<std::uint32_t> immediate;
  };
  void deliver(Message message);
  void match();
  void finish();
  void complete(provider::CompletionQueue* queue, Operation operation, std::uint64_t context, Status status,
                std::uint64_t bytes);

  FakeContext& context_;
  provider::EndpointRequest request_;
  Limits limits_;
  std::uint64_t number_ = 0;
  std::uint64_t peer_number_ = 0;
  bool up_ = false;
  bool was_up_ = false;
  bool closing_ = false;
  bool ended_ = false;
  bool finished_ = false;
  bool silenced_ = false;
  bool failed_ = false;
  bool waits_messages_ = false;
  bool connect_reported_ = false;
  std::uint64_t sent_ = 0;
  std::uint64_t matched_ = 0;
  std::deque<Message> unexpected_;
  std::deque<std::pair<std::uint64_t, std::vector<Segment>>> receives_;
};

class FakeContext final : public provider::Context {
 public:
  explicit FakeContext(FakeBehaviour behaviour, provider::ContextEvents& events);
  ~FakeContext() override;
  [[nodiscard]] const Attributes& attributes() const noexcept override { return attributes_; }
  [[nodiscard]] std::vector<Counter> counters() const override { return {}; }
  [[nodiscard]] bool keeps_connection() const noexcept override { return false; }
  [[nodiscard]] ProtocolRange protocol() const noexcept override { return behaviour.protocol; }
  [[nodiscard]] std::unique_ptr<provider::CompletionQueue> create_completion_queue(
      std::uint32_t capacity, provider::QueueEvents& events) override;
  [[nodiscard]] std::unique_ptr<provider::ReceiveQueue> create_receive_queue(
      provider::CompletionQueue& queue, std::uint32_t depth, std::uint64_t user_value) override;
  [[nodiscard]] std::unique_ptr<provider::MemoryRegion> register_memory(
      const RegistrationRequest& request) override;
  [[nodiscard]] std::unique_ptr<provider::Endpoint> prepare_endpoint(
      const provider::EndpointRequest& request) override;
  Clock::time_point service(Clock::time_point now) noexcept override;
  [[nodiscard]] int service_descriptor() noexcept override { return -1; }
  void enter_child() noexcept override;

  // The endpoint with this id; null when there is none.
  [[nodiscard]] FakeEndpoint* endpoint(std::uint32_t id);

  const FakeBehaviour behaviour;
  std::map<std::uint32_t, FakeEndpoint*> endpoints;
  std::vector<std::uint32_t> to_establish;
  std::atomic<bool> inert{false};
  provider::ContextEvents& events;

 private:
  Attributes attributes_;
};

// A weft context over the fake, and the fake behind it.
struct FakeOpen {
  Context context;
  FakeContext* fake = nullptr;
};
[[nodiscard]] FakeOpen open_fake(FakeBehaviour behaviour = {}, const ContextOptions& options = {});

// Provider objects alive in the process.
[[nodiscard]] int fake_objects();

}  // namespace weft::test
