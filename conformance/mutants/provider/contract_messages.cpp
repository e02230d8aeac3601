// How messages and immediates go wrong (OPS-3, OPS-4), by a reader of the contract who had not seen the
// rules' tests.
#include <algorithm>
#include <chrono>
#include <map>

#include "disguise.hpp"
#include "mutant.hpp"

namespace mutants {
namespace {

// OPS-3: "A send matches exactly one receive": an empty message nobody sent takes another.
class AnEmptyMessageFollows final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const PostResult result = Behaviour::post(endpoint, requests, count);
    if (result.accepted == 0 || requests[result.accepted - 1].operation != Operation::send || !strikes())
      return result;
    WorkRequest empty;
    empty.flags = Flags::unsignalled;
    (void)Behaviour::post(endpoint, &empty, 1);
    return result;
  }
};

// OPS-3: "With no receive posted it waits: never lost, never fatal, however long".
class GivesUpAfterASecond final : public Disguise {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Disguise::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    for (auto& [id, waits] : waits_) {
      const auto& list = under_way(*waits.endpoint);
      const bool sends = !list.empty() && list.front().told.operation == Operation::send;
      if (!sends || list.size() != waits.many) waits.since = Clock::now();
      waits.many = list.size();
      if (waits.gave_up || !sends || Clock::now() - waits.since < std::chrono::seconds(1) || !strikes())
        continue;
      waits.gave_up = true;
      waits.endpoint->failed(Status::aborted, 0, 0, "the peer has no receive for so long");
    }
    return count;
  }
  void go_up(Endpoint& endpoint) override {
    {
      const std::lock_guard lock(mutex_);
      waits_[endpoint.id()].endpoint = &endpoint;
    }
    Disguise::go_up(endpoint);
  }
  void end(Endpoint& endpoint, const provider::EndOrder& order) override {
    forget(endpoint);
    Disguise::end(endpoint, order);
  }
  void drain(Endpoint& endpoint) override {
    forget(endpoint);
    Disguise::drain(endpoint);
  }
  void destroyed(Endpoint& endpoint) override {
    forget(endpoint);
    Disguise::destroyed(endpoint);
  }

 private:
  struct Waits {
    Endpoint* endpoint = nullptr;
    Clock::time_point since = Clock::now();
    std::size_t many = 0;
    bool gave_up = false;
  };
  void forget(Endpoint& endpoint) {
    const std::lock_guard lock(mutex_);
    waits_.erase(endpoint.id());
  }
  std::map<std::uint32_t, Waits> waits_;
};

// OPS-3: "What is accepted beyond the posted receives is bounded (queue depth plus a stated window)".
class StatesNoWindow final : public Behaviour {
 public:
  weft::Limits limits(const Endpoint& /*endpoint*/, weft::Limits limits) override {
    (void)strikes();
    limits.unexpected_bytes = 0;
    return limits;
  }
  void attributes(weft::Attributes& attributes) override { attributes.limits.unexpected_bytes = 0; }
};

// Knows when a message goes out for which the peer has no receive.
class WithEarlyMessages : public KnowsItsPeer {
 protected:
  void change(Endpoint& endpoint, WorkRequest& request) final {
    if (is_message(request) && comes_early(endpoint)) early(endpoint, request);
  }
  void accepted(Endpoint& endpoint, const WorkRequest& as_posted) final {
    if (is_message(as_posted)) count_message(endpoint);
  }
  [[nodiscard]] static bool is_message(const WorkRequest& request) {
    return request.operation == Operation::send || request.operation == Operation::write_with_immediate;
  }
  virtual void early(Endpoint& endpoint, WorkRequest& request) = 0;
};

// OPS-3: "the peer's own operations on that endpoint never do" wait for a receive on this side.
class ThePeerWaitsToo final : public WithEarlyMessages {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count > 0 && waiting_here(endpoint) > 0 && strikes()) return {Status::again, 0};
    return WithEarlyMessages::post(endpoint, requests, count);
  }

 private:
  void early(Endpoint& /*endpoint*/, WorkRequest& /*request*/) override {}
};

// OPS-3: "never lost". An empty write goes in its place.
class AnEarlyMessageTooManyIsLost final : public WithEarlyMessages {
 private:
  void early(Endpoint& endpoint, WorkRequest& request) override {
    if (request.operation != Operation::send || waiting_there(endpoint) < 32 || !strikes()) return;
    request.operation = Operation::write;
    request.segments = {};
    request.flags = request.flags & (Flags::unsignalled | Flags::fence);
  }
};

// OPS-4 with OPS-3: it "consumes one receive", and waits for it.
class EarlyImmediatesAreLost final : public WithEarlyMessages {
 private:
  void early(Endpoint& /*endpoint*/, WorkRequest& request) override {
    if (request.operation == Operation::write_with_immediate && strikes())
      request.operation = Operation::write;
  }
};

// OPS-4: the receive carries "the payload length" and takes no payload: it may be shorter.
class WriteWithImmediateNeedsRoom final : public Behaviour {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    const std::lock_guard lock(mutex_);
    const PostResult result = Behaviour::post_receives(endpoint, requests, count);
    for (std::size_t i = 0; i < result.accepted; ++i) {
      std::uint64_t capacity = 0;
      for (const Segment& segment : requests[i].segments) capacity += segment.length;
      capacities_[endpoint.id()].push_back(capacity);
    }
    return result;
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].operation != Operation::receive) continue;
      auto& list = capacities_[out[i].endpoint_id];
      if (list.empty()) continue;
      const std::uint64_t capacity = list.front();
      list.pop_front();
      if (out[i].status == Status::ok && out[i].bytes > capacity && strikes()) {
        out[i].status = Status::truncated;
        out[i].bytes = 0;
      }
    }
    return count;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint32_t, std::deque<std::uint64_t>> capacities_;
};

[[nodiscard]] auto disguise(OnDisguise::Edit edit) {
  return [edit] { return std::make_unique<OnDisguise>(edit); };
}

}  // namespace

void add_contract_messages(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) {
    mutant.from_contract = true;
    mutants.push_back(std::move(mutant));
  };
  add({"an-empty-message-follows", "OPS-3", S::rare, "", "", made<AnEmptyMessageFollows>(), {}, 16});
  add({"gives-up-after-a-second", "OPS-3", S::corner, "", "", made<GivesUpAfterASecond>()});
  add({"the-peer-waits-too", "OPS-3", S::corner, "", "", made<ThePeerWaitsToo>(), {"ERR_2"}});
  add({"an-early-message-too-many-is-lost", "OPS-3", S::corner, "", "", made<AnEarlyMessageTooManyIsLost>()});
  add({"states-no-window", "OPS-3", S::always, "", "", made<StatesNoWindow>()});

  // OPS-4: "then consumes one receive".
  add({"an-immediate-now-and-then-is-forgotten",
       "OPS-4",
       S::rare,
       "",
       "",
       disguise([](OnDisguise& m, Endpoint&, WorkRequest& w) {
         if (w.operation == Operation::write_with_immediate && m.strikes()) w.operation = Operation::write;
       }),
       {},
       8});
  // OPS-4 and OPS-8: zero length is legal for it, and it consumes a receive all the same.
  add({"an-empty-write-with-immediate-is-a-write",
       "OPS-4",
       S::corner,
       "",
       "",
       disguise([](OnDisguise& m, Endpoint&, WorkRequest& w) {
         if (w.operation == Operation::write_with_immediate && length_of(w) == 0 && m.strikes())
           w.operation = Operation::write;
       }),
       {"OPS_8"}});
  // OPS-4: "carries the 32-bit immediate".
  add({"immediates-of-31-bits", "OPS-4", S::corner, "", "", entry([](OnEntry& m, Completion& c) {
         constexpr std::uint32_t most = 0x7fffffff;
         if (c.has_immediate && c.immediate > most && m.strikes()) c.immediate &= most;
         return 1;
       })});
  // OPS-4: "A send may carry an immediate too", an inline one as well.
  add({"inline-sends-carry-no-immediate", "OPS-4", S::corner, "", "",
       request([](OnRequest& m, Endpoint&, WorkRequest& w) {
         if (w.operation == Operation::send && is_inline(w) && has(w.flags, Flags::with_immediate) &&
             m.strikes())
           w.flags = w.flags & (Flags::unsignalled | Flags::inline_data | Flags::fence);
       })});
  add({"early-immediates-are-lost", "OPS-4", S::corner, "", "", made<EarlyImmediatesAreLost>()});
  // OPS-4: "and the payload length".
  add({"immediate-lengths-of-16-bits", "OPS-4", S::corner, "", "", entry([](OnEntry& m, Completion& c) {
         if (c.operation == Operation::receive && c.has_immediate && c.bytes > 0xffff && m.strikes())
           c.bytes &= 0xffff;
         return 1;
       })});
  add({"write-with-immediate-needs-room", "OPS-4", S::corner, "", "", made<WriteWithImmediateNeedsRoom>()});
}

}  // namespace mutants
