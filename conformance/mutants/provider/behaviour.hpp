// How one mutant is wrong. Each function forwards as a good provider does; a mutant overrides what it gets
// wrong, and says so by strikes() each time it does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "decorators/common/context.hpp"
#include "weft/provider/provider.hpp"

namespace mutants {

using weft::Access;
using weft::Completion;
using weft::Flags;
using weft::Operation;
using weft::PostResult;
using weft::ReceiveRequest;
using weft::Segment;
using weft::Status;
using weft::WorkRequest;
namespace provider = weft::provider;
using Clock = provider::Context::Clock;

class Queue;
class Endpoint;
class Receives;
class Region;

class Behaviour {
 public:
  Behaviour() = default;
  virtual ~Behaviour() = default;
  Behaviour(const Behaviour&) = delete;
  Behaviour& operator=(const Behaviour&) = delete;

  // One occasion in so many; 1: each.
  void set_rarity(std::uint64_t one_in) noexcept { one_in_ = one_in; }

  virtual void open(provider::Context& /*inner*/, const provider::OpenRequest& /*request*/) {}
  virtual void attributes(weft::Attributes& /*attributes*/) {}
  virtual std::uint32_t capacity(std::uint32_t wanted) { return wanted; }
  virtual Clock::time_point service(provider::Context& inner, Clock::time_point now) {
    return inner.service(now);
  }

  virtual std::size_t poll(Queue& queue, Completion* out, std::size_t room);
  virtual bool arm(Queue& queue);
  virtual void readable(Queue& queue);
  virtual int descriptor(Queue& queue);
  virtual void gone(Queue& /*queue*/) {}

  virtual PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count);
  virtual PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count);
  virtual weft::Limits limits(const Endpoint& endpoint, weft::Limits limits);
  virtual provider::Endpoint::Imported import_key(Endpoint& endpoint, std::span<const std::byte> key);
  virtual void prepared(const provider::EndpointRequest& /*request*/) {}
  virtual void establishing(Endpoint& /*endpoint*/, const provider::PeerParameters& /*peer*/) {}
  virtual void go_up(Endpoint& endpoint);
  virtual bool withdraw(Endpoint& endpoint);
  virtual void drain(Endpoint& endpoint);
  virtual void drained(Endpoint& endpoint, std::uint64_t messages);
  virtual void end(Endpoint& endpoint, const provider::EndOrder& order);
  virtual void silence(Endpoint& endpoint);
  virtual void destroyed(Endpoint& /*endpoint*/) {}

  virtual PostResult post_shared(Receives& receives, const ReceiveRequest* requests, std::size_t count);
  virtual void set_low_water(Receives& receives, std::uint32_t mark);

  virtual void registering(weft::RegistrationRequest& /*request*/) {}
  virtual void registered(Region& /*region*/) {}
  virtual weft::AtomicScope atomic_scope(const Region& region);
  virtual void collect_users(Region& region, std::vector<std::uint32_t>& endpoint_ids);
  virtual void cancel_shared_receives(Region& region);
  virtual Status deregister(Region& region);
  virtual std::span<const std::byte> key(const Region& region);

 protected:
  // At each occasion to be wrong: is it now? If so, that is noted for the runner, which demands it.
  [[nodiscard]] bool strikes() noexcept;

 private:
  std::uint64_t one_in_ = 1;
  std::atomic<std::uint64_t> occasions_{0};
};

class Queue final : public weft::decorator::CompletionQueue {
 public:
  Queue(Behaviour& behaviour, provider::QueueEvents& events)
      : weft::decorator::CompletionQueue(events), behaviour_(behaviour) {}
  ~Queue() override { behaviour_.gone(*this); }

  std::size_t poll(Completion* out, std::size_t room) noexcept override;
  [[nodiscard]] bool arm() noexcept override;
  [[nodiscard]] int descriptor() override { return behaviour_.descriptor(*this); }
  void readable() noexcept override { behaviour_.readable(*this); }
  void forward_readable() noexcept { events().readable(); }

  // An entry that no provider made; it comes before everything else.
  void inject(const Completion& entry);

 private:
  Behaviour& behaviour_;
  std::mutex mutex_;
  std::deque<Completion> injected_;
};

class Endpoint final : public weft::decorator::Endpoint {
 public:
  Endpoint(Behaviour& behaviour, const provider::EndpointRequest& request)
      : weft::decorator::Endpoint(request),
        behaviour_(behaviour),
        user_value_(request.user_value),
        sends_(static_cast<Queue*>(request.send_queue)),
        receives_(static_cast<Queue*>(request.receive_queue)),
        shares_receives_(request.shared_receives != nullptr) {
    behaviour_.prepared(request);
  }
  ~Endpoint() override { behaviour_.destroyed(*this); }

  [[nodiscard]] weft::Limits limits() const noexcept override {
    return behaviour_.limits(*this, inner().limits());
  }
  PostResult post(const WorkRequest* requests, std::size_t count) noexcept override {
    return behaviour_.post(*this, requests, count);
  }
  PostResult post_receives(const ReceiveRequest* requests, std::size_t count) noexcept override {
    return behaviour_.post_receives(*this, requests, count);
  }
  [[nodiscard]] Imported import_key(std::span<const std::byte> key) override {
    return behaviour_.import_key(*this, key);
  }
  bool establish(const provider::PeerParameters& peer) override {
    behaviour_.establishing(*this, peer);
    return inner().establish(peer);
  }
  bool withdraw_connect_report() noexcept override { return behaviour_.withdraw(*this); }
  void drained(std::uint64_t messages) noexcept override { behaviour_.drained(*this, messages); }
  void go_up() noexcept override {
    up_ = true;
    behaviour_.go_up(*this);
  }
  void drain() noexcept override { behaviour_.drain(*this); }
  void end(const provider::EndOrder& order) noexcept override { behaviour_.end(*this, order); }
  void silence() noexcept override { behaviour_.silence(*this); }
  using weft::decorator::Endpoint::events;

  [[nodiscard]] Queue& send_queue() const noexcept { return *sends_; }
  [[nodiscard]] Queue& receive_queue() const noexcept { return *receives_; }
  [[nodiscard]] bool is_up() const noexcept { return up_; }
  [[nodiscard]] bool shares_receives() const noexcept { return shares_receives_; }
  // As a good provider would report the request.
  [[nodiscard]] Completion completion_of(const WorkRequest& request) const;

 private:
  Behaviour& behaviour_;
  const std::uint64_t user_value_;
  Queue* sends_;
  Queue* receives_;
  const bool shares_receives_;
  std::atomic<bool> up_{false};
};

class Receives final : public weft::decorator::ReceiveQueue {
 public:
  Receives(Behaviour& behaviour, std::uint32_t depth) : behaviour_(behaviour), depth_(depth) {}
  PostResult post(const ReceiveRequest* requests, std::size_t count) noexcept override {
    return behaviour_.post_shared(*this, requests, count);
  }
  void set_low_water(std::uint32_t mark) noexcept override { behaviour_.set_low_water(*this, mark); }
  [[nodiscard]] std::uint32_t depth() const noexcept { return depth_; }

 private:
  Behaviour& behaviour_;
  const std::uint32_t depth_;
};

class Region final : public weft::decorator::MemoryRegion {
 public:
  Region(Behaviour& behaviour, const weft::RegistrationRequest& request)
      : behaviour_(behaviour), request_(request) {}
  void wrap(std::unique_ptr<provider::MemoryRegion> inner) override {
    weft::decorator::MemoryRegion::wrap(std::move(inner));
    behaviour_.registered(*this);
  }
  [[nodiscard]] weft::AtomicScope atomic_scope() const noexcept override {
    return behaviour_.atomic_scope(*this);
  }
  Status deregister() noexcept override { return behaviour_.deregister(*this); }
  void collect_users(std::vector<std::uint32_t>& endpoint_ids) override {
    goes_by_force_ = true;
    behaviour_.collect_users(*this, endpoint_ids);
  }
  // Its last handle is gone: the core asks whom to end for it.
  [[nodiscard]] bool goes_by_force() const noexcept { return goes_by_force_; }
  void cancel_shared_receives() noexcept override { behaviour_.cancel_shared_receives(*this); }
  [[nodiscard]] std::span<const std::byte> key() const noexcept override { return behaviour_.key(*this); }
  [[nodiscard]] const weft::RegistrationRequest& request() const noexcept { return request_; }

 private:
  Behaviour& behaviour_;
  const weft::RegistrationRequest request_;
  std::atomic<bool> goes_by_force_{false};
};

// Looks at each entry on its way to the program.
class OnEntry : public Behaviour {
 public:
  // How often the program gets it.
  using Edit = std::function<int(OnEntry&, Completion&)>;
  explicit OnEntry(Edit edit) : edit_(std::move(edit)) {}
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override;
  using Behaviour::strikes;

 private:
  const Edit edit_;
};

// Looks at each request on its way to the provider; batches go one by one.
class OnRequest : public Behaviour {
 public:
  using Edit = std::function<void(OnRequest&, Endpoint&, WorkRequest&)>;
  explicit OnRequest(Edit edit) : edit_(std::move(edit)) {}
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override;
  using Behaviour::strikes;

 private:
  const Edit edit_;
};

// Answers some requests itself: the status it gives, or nothing to forward.
class OnPost : public Behaviour {
 public:
  using Answer = std::function<std::optional<Status>(OnPost&, Endpoint&, const WorkRequest&)>;
  explicit OnPost(Answer answer) : answer_(std::move(answer)) {}
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override;
  using Behaviour::strikes;

 private:
  const Answer answer_;
};

// Changes what a post answered.
class OnAnswer : public Behaviour {
 public:
  using Edit = std::function<void(OnAnswer&, Endpoint&, const WorkRequest&, PostResult&)>;
  explicit OnAnswer(Edit edit) : edit_(std::move(edit)) {}
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override;
  using Behaviour::strikes;

 private:
  const Edit edit_;
};

[[nodiscard]] inline std::uint64_t length_of(const WorkRequest& request) noexcept {
  std::uint64_t length = 0;
  for (const Segment& segment : request.segments) length += segment.length;
  return length;
}
[[nodiscard]] inline bool is_send_side(const Completion& entry) noexcept {
  return entry.operation <= Operation::flush;
}

}  // namespace mutants
