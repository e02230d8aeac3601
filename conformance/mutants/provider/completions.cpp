// Mutants of the rules CMP.
#include <chrono>

#include "mutant.hpp"

namespace mutants {
namespace {

using namespace std::chrono_literals;

// Slots of unsignalled operations do not come back after so many.
class RunsOutOfSlots final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    constexpr std::uint64_t slots = 5000;
    for (std::size_t i = 0; i < count; ++i) {
      if (has(requests[i].flags, Flags::unsignalled)) ++used_;
    }
    if (used_ > slots && strikes()) return {Status::again, 0};
    return Behaviour::post(endpoint, requests, count);
  }

 private:
  std::atomic<std::uint64_t> used_{0};
};

// Says that a large send is done, and reads its memory later.
class CompletesSendsEarly final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count != 1 || requests[0].operation != Operation::send || requests[0].segments.size() != 1 ||
        length_of(requests[0]) < 1000 || has(requests[0].flags, Flags::unsignalled) || !strikes()) {
      return Behaviour::post(endpoint, requests, count);
    }
    const std::lock_guard lock(mutex_);
    late_.push_back({&endpoint, requests[0], requests[0].segments[0], Clock::now() + 50ms});
    endpoint.send_queue().inject(endpoint.completion_of(requests[0]));
    return {Status::ok, 1};
  }
  Clock::time_point service(provider::Context& inner, Clock::time_point now) override {
    {
      const std::lock_guard lock(mutex_);
      for (auto at = late_.begin(); at != late_.end();) {
        if (now < at->when) {
          ++at;
          continue;
        }
        at->request.segments = {&at->segment, 1};
        at->request.flags |= Flags::unsignalled;
        (void)at->endpoint->inner().post(&at->request, 1);
        at = late_.erase(at);
      }
    }
    return std::min(Behaviour::service(inner, now), now + 10ms);
  }
  void destroyed(Endpoint& endpoint) override {
    const std::lock_guard lock(mutex_);
    std::erase_if(late_, [&](const Late& late) { return late.endpoint == &endpoint; });
  }

 private:
  struct Late {
    Endpoint* endpoint;
    WorkRequest request;
    Segment segment;
    Clock::time_point when;
  };
  std::mutex mutex_;
  std::vector<Late> late_;
};

// A write is said to be done before the operations in front of it are.
class CompletesWritesAtOnce final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count != 1 || requests[0].operation != Operation::write ||
        has(requests[0].flags, Flags::unsignalled) || length_of(requests[0]) != 0 || !strikes()) {
      return Behaviour::post(endpoint, requests, count);
    }
    endpoint.send_queue().inject(endpoint.completion_of(requests[0]));
    return {Status::ok, 1};
  }
};

// Writes are said to be done while they are held back.
class CompletesWritesBeforeTheyAreDone final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count != 1 || requests[0].operation != Operation::write || requests[0].segments.size() != 1 ||
        has(requests[0].flags, Flags::unsignalled) || length_of(requests[0]) < 1000 || !strikes()) {
      const PostResult result = Behaviour::post(endpoint, requests, count);
      if (count != 0) release();
      return result;
    }
    const std::lock_guard lock(mutex_);
    endpoint_ = &endpoint;
    request_ = requests[0];
    segment_ = requests[0].segments[0];
    full_ = true;
    endpoint.send_queue().inject(endpoint.completion_of(requests[0]));
    return {Status::ok, 1};
  }
  void destroyed(Endpoint& endpoint) override {
    const std::lock_guard lock(mutex_);
    if (endpoint_ == &endpoint) full_ = false;
  }

 private:
  void release() {
    const std::lock_guard lock(mutex_);
    if (!full_) return;
    full_ = false;
    request_.segments = {&segment_, 1};
    request_.flags |= Flags::unsignalled;
    (void)endpoint_->inner().post(&request_, 1);
  }
  std::mutex mutex_;
  bool full_ = false;
  Endpoint* endpoint_ = nullptr;
  WorkRequest request_;
  Segment segment_;
};

class HasMoreRoomThanAsked final : public Behaviour {
 public:
  std::uint32_t capacity(std::uint32_t wanted) override { return strikes() ? wanted * 2 : wanted; }
};

// Takes entries out before anybody asks, so that their room comes back too early.
class GivesRoomBackEarly final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    PostResult result = Behaviour::post(endpoint, requests, count);
    if (result.status != Status::again || !endpoint.is_up()) return result;
    Completion entry;
    Queue& queue = endpoint.send_queue();
    if (queue.inner().poll(&entry, 1) == 0) return result;
    (void)strikes();
    queue.inject(entry);
    return Behaviour::post(endpoint, requests, count);
  }
};

// How often the program gets a good completion of its send side.
int never(OnEntry& m, Completion& c) {
  return is_send_side(c) && c.status == Status::ok && m.strikes() ? 0 : 1;
}
int twice(OnEntry& m, Completion& c) {
  return is_send_side(c) && c.status == Status::ok && m.strikes() ? 2 : 1;
}

}  // namespace

void add_completions(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) { mutants.push_back(std::move(mutant)); };
  add({"completion-lost-now-and-then", "CMP-1", S::rare, "signalled_operations", "", entry(never), {}, 1000});
  add({"completion-twice-now-and-then",
       "CMP-1",
       S::rare,
       "signalled_operations",
       "",
       entry(twice),
       {},
       1000});
  add({"unsignalled-ones-complete", "CMP-1", S::always, "signalled_operations", "",
       request([](OnRequest& m, Endpoint&, WorkRequest& r) {
         if (r.operation == Operation::write && has(r.flags, Flags::unsignalled) && m.strikes())
           r.flags = static_cast<Flags>(static_cast<unsigned>(r.flags) &
                                        ~static_cast<unsigned>(Flags::unsignalled));
       })});
  add({"failed-unsignalled-ones-are-silent",
       "CMP-1",
       S::corner,
       "a_failed_unsignalled",
       "",
       entry([](OnEntry& m, Completion& c) {
         return is_send_side(c) && c.status != Status::ok && m.strikes() ? 0 : 1;
       }),
       {"ERR_2"}});
  add({"runs-out-of-slots", "CMP-2", S::corner, "unsignalled_operations_follow", "", made<RunsOutOfSlots>()});
  add({"sends-complete-before-their-memory-is-free", "CMP-3", S::corner, "after_its_completion", "",
       made<CompletesSendsEarly>()});
  add({"writes-complete-before-they-are-done",
       "CMP-3",
       S::corner,
       "every_later",
       "",
       made<CompletesWritesBeforeTheyAreDone>(),
       {"ERR_2"}});
  add({"a-completion-stands-for-nothing",
       "CMP-4",
       S::corner,
       "",
       "",
       made<CompletesWritesAtOnce>(),
       {"OPS_8"}});
  add({"tells-no-length", "CMP-5", S::always, "", "bytes", entry([](OnEntry& m, Completion& c) {
         if (c.operation == Operation::send && c.bytes != 0 && m.strikes()) c.bytes = 0;
         return 1;
       })});
  add({"another-endpoint-s-number",
       "CMP-5",
       S::always,
       "",
       "endpoint",
       entry([](OnEntry& m, Completion& c) {
         if (c.operation == Operation::read && m.strikes()) ++c.endpoint_id;
         return 1;
       }),
       {"OPS_7", "ERR_2"}});
  add({"forgets-the-program-s-value", "CMP-5", S::always, "", "user_value",
       entry([](OnEntry& m, Completion& c) {
         if (c.user_value != 0 && is_send_side(c) && m.strikes()) c.user_value = 0;
         return 1;
       })});
  add({"failed-receives-tell-bytes",
       "CMP-5",
       S::corner,
       "",
       "bytes",
       entry([](OnEntry& m, Completion& c) {
         if (c.operation == Operation::receive && c.status == Status::cancelled && m.strikes()) c.bytes = 1;
         return 1;
       }),
       {"ERR_2"}});
  add({"calls-it-a-write",
       "CMP-5",
       S::corner,
       "",
       "operation",
       entry([](OnEntry& m, Completion& c) {
         if (c.operation == Operation::write_with_immediate && m.strikes()) c.operation = Operation::write;
         return 1;
       }),
       {"OPS_7"}});
  add({"more-room-than-asked", "CMP-6", S::always, "a_small_queue", "again", made<HasMoreRoomThanAsked>()});
  add({"room-comes-back-early", "CMP-6", S::corner, "a_small_queue", "", made<GivesRoomBackEarly>()});
  add({"truncated-receives-tell-bytes", "CMP-7", S::corner, "", "", entry([](OnEntry& m, Completion& c) {
         if (c.status == Status::truncated && c.operation == Operation::receive && m.strikes()) c.bytes = 64;
         return 1;
       })});
}

}  // namespace mutants
