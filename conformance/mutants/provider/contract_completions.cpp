// How completions go wrong (CMP-1, CMP-2, CMP-4 to CMP-6), by a reader of the contract who had not seen the
// rules' tests.
#include <algorithm>
#include <map>
#include <set>

#include "disguise.hpp"
#include "mutant.hpp"
#include "overtaking.hpp"

namespace mutants {
namespace {

[[nodiscard]] bool is_failure(const Completion& entry) { return entry.status != Status::ok; }

// CMP-1: a failed unsignalled operation completes "with its own context".
class FailedUnsignalledOnesBorrowAContext final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const std::lock_guard lock(mutex_);
    Known& known = known_[endpoint.id()];
    for (std::size_t i = 0; i < count; ++i) {
      if (is_signalled(requests[i])) {
        known.signalled.insert(requests[i].context);
        known.last = requests[i].context;
      } else {
        known.silent.insert(requests[i].context);
      }
    }
    return Behaviour::post(endpoint, requests, count);
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_failure(out[i]) || !is_send_side(out[i].operation)) continue;
      const Known& known = known_[out[i].endpoint_id];
      if (known.silent.contains(out[i].context) && !known.signalled.contains(out[i].context) && strikes())
        out[i].context = known.last;
    }
    return count;
  }

 private:
  struct Known {
    std::set<std::uint64_t> signalled;
    std::set<std::uint64_t> silent;
    std::uint64_t last = 0;
  };
  std::mutex mutex_;
  std::map<std::uint32_t, Known> known_;
};

// CMP-1: "exactly one completion", also for what comes last in an array that is full.
class TheLastOfAFullArrayIsLost final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    if (room < 2 || count < room || out[count - 1].operation > Operation::receive || !strikes()) return count;
    return count - 1;
  }
};

// CMP-1: each gives one, with equal contexts too.
class EqualCompletionsAreOne final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const bool equal = kept > 0 && out[kept - 1].context == out[i].context &&
                         out[kept - 1].operation == out[i].operation && is_send_side(out[i].operation) &&
                         out[kept - 1].endpoint_id == out[i].endpoint_id;
      if (!equal || !strikes()) out[kept++] = out[i];
    }
    return kept;
  }
};

// CMP-2: "Any number of unsignalled operations can follow each other": here some keep a slot for ever.
class SlotsLeak final : public Behaviour {
 public:
  using Kind = std::function<bool(const WorkRequest&)>;
  explicit SlotsLeak(Kind kind) : kind_(std::move(kind)) {}
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    PostResult result;
    if (count == 0) return Behaviour::post(endpoint, requests, count);
    const std::lock_guard lock(mutex_);
    std::uint64_t& lost = lost_[endpoint.id()];
    for (; result.accepted < count; ++result.accepted) {
      if (lost >= endpoint.inner().limits().send_depth) return {Status::again, result.accepted};
      const WorkRequest& request = requests[result.accepted];
      result.status = Behaviour::post(endpoint, &request, 1).status;
      if (result.status != Status::ok) break;
      if (!is_signalled(request) && kind_(request) && strikes()) ++lost;
    }
    return result;
  }

 private:
  const Kind kind_;
  std::mutex mutex_;
  std::map<std::uint32_t, std::uint64_t> lost_;
};
[[nodiscard]] auto leaks(const SlotsLeak::Kind& kind) {
  return [=] { return std::make_unique<SlotsLeak>(kind); };
}

// CMP-5: "immediate if any".
class TheLastImmediateSticks final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].operation != Operation::receive) continue;
      if (out[i].has_immediate) {
        last_[out[i].endpoint_id] = out[i].immediate;
      } else if (const auto found = last_.find(out[i].endpoint_id); found != last_.end() && strikes()) {
        out[i].has_immediate = true;
        out[i].immediate = found->second;
      }
    }
    return count;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint32_t, std::uint32_t> last_;
};

// CMP-6: room is "given back when the entry is taken", not when all are.
class RoomComesBackWithTheLast final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const std::lock_guard lock(mutex_);
    Queue* const queue = &endpoint.send_queue();
    if (count > 0 && is_signalled(requests[0]) && stuck_.contains(queue) && strikes())
      return {Status::again, 0};
    const PostResult result = Behaviour::post(endpoint, requests, count);
    if (result.status == Status::again && endpoint.is_up()) full_.insert(queue);
    return result;
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    if (room > 0 && count < room) {
      stuck_.erase(&queue);
      full_.erase(&queue);
    } else if (count > 0 && full_.contains(&queue)) {
      stuck_.insert(&queue);
    }
    return count;
  }
  void gone(Queue& queue) override {
    const std::lock_guard lock(mutex_);
    stuck_.erase(&queue);
    full_.erase(&queue);
  }

 private:
  std::mutex mutex_;
  std::set<Queue*> full_;
  std::set<Queue*> stuck_;
};

// CMP-6: "Its capacity counts signalled operations and receives", not unsignalled ones.
class UnsignalledOnesNeedRoom final : public Disguise {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count > 0 && !is_signalled(requests[0])) {
      const std::lock_guard lock(mutex_);
      const std::size_t depth = endpoint.inner().limits().send_depth;
      if (full_.contains(&endpoint.send_queue()) && under_way(endpoint).size() + 1 < depth && strikes())
        return {Status::again, 0};
    }
    const PostResult result = Disguise::post(endpoint, requests, count);
    if (count == 0 || result.accepted == count || !is_signalled(requests[result.accepted])) return result;
    const std::lock_guard lock(mutex_);
    if (result.status == Status::again && endpoint.is_up()) full_.insert(&endpoint.send_queue());
    return result;
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Disguise::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    if (count > 0) full_.erase(&queue);
    return count;
  }
  void gone(Queue& queue) override {
    const std::lock_guard lock(mutex_);
    full_.erase(&queue);
  }

 private:
  std::set<Queue*> full_;
};

// CMP-6: the capacity that was asked for.
class OneRoomLessThanAsked final : public Behaviour {
 public:
  std::uint32_t capacity(std::uint32_t wanted) override {
    return wanted > 1 && strikes() ? wanted - 1 : wanted;
  }
};

[[nodiscard]] Overtaking::Kind silent(Operation operation) {
  return [=](const WorkRequest& w) { return w.operation == operation && !is_signalled(w); };
}

}  // namespace

void add_contract_completions(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) {
    mutant.from_contract = true;
    mutants.push_back(std::move(mutant));
  };

  add({"failed-unsignalled-ones-borrow-a-context",
       "CMP-1",
       S::corner,
       "",
       "",
       made<FailedUnsignalledOnesBorrowAContext>(),
       {"ERR_2"}});
  // CMP-1: "exactly one completion", for failures too.
  add({"the-one-at-fault-completes-twice", "CMP-1", S::corner, "", "", entry([](OnEntry& m, Completion& c) {
         const bool at_fault =
             is_failure(c) && c.status != Status::cancelled && c.operation <= Operation::receive;
         return at_fault && m.strikes() ? 2 : 1;
       })});
  add({"what-is-cancelled-now-and-then-completes-twice",
       "CMP-1",
       S::rare,
       "",
       "",
       entry([](OnEntry& m, Completion& c) {
         return c.status == Status::cancelled && c.operation <= Operation::receive && m.strikes() ? 2 : 1;
       }),
       {"ERR_2"},
       4});
  add({"the-last-of-a-full-array-is-lost", "CMP-1", S::corner, "", "", made<TheLastOfAFullArrayIsLost>()});
  add({"equal-completions-are-one", "CMP-1", S::corner, "", "", made<EqualCompletionsAreOne>()});
  // CMP-1: an unsignalled one "gives none when it succeeds".
  add({"unsignalled-atomics-complete", "CMP-1", S::corner, "", "",
       request([](OnRequest& m, Endpoint&, WorkRequest& w) {
         if (is_atomic(w.operation) && !is_signalled(w) && m.strikes())
           w.flags = w.flags & (Flags::fence | Flags::inline_data);
       })});

  add({"unsignalled-reads-keep-their-slots", "CMP-2", S::corner, "", "",
       leaks([](const WorkRequest& w) { return w.operation == Operation::read; })});
  add({"unsignalled-flushes-keep-their-slots", "CMP-2", S::corner, "", "",
       leaks([](const WorkRequest& w) { return w.operation == Operation::flush; })});
  add({"leaks-a-slot-now-and-then",
       "CMP-2",
       S::rare,
       "",
       "",
       leaks([](const WorkRequest&) { return true; }),
       {},
       8});

  // CMP-4: "all earlier ones of that endpoint are complete too", the unsignalled ones as well.
  add({"unsignalled-reads-lag-behind", "CMP-4", S::always, "", "",
       overtaken(silent(Operation::read), is_signalled)});
  add({"unsignalled-atomics-lag-behind", "CMP-4", S::corner, "", "",
       overtaken(silent(Operation::fetch_add), is_signalled)});
  add({"unsignalled-writes-lag-behind", "CMP-4", S::corner, "", "",
       overtaken(silent(Operation::write), is_signalled)});
  add({"now-and-then-a-read-lags-behind",
       "CMP-4",
       S::rare,
       "",
       "",
       overtaken(silent(Operation::read), is_signalled),
       {},
       4});

  // CMP-5: "All are right for failures too."
  add({"failed-ones-forget-the-program-s-value", "CMP-5", S::corner, "", "",
       entry([](OnEntry& m, Completion& c) {
         if (is_failure(c) && c.operation <= Operation::receive && m.strikes()) c.user_value = 0;
         return 1;
       })});
  add({"failed-ones-are-all-sends", "CMP-5", S::corner, "", "", entry([](OnEntry& m, Completion& c) {
         if (is_failure(c) && is_send_side(c.operation) && c.operation != Operation::send && m.strikes())
           c.operation = Operation::send;
         return 1;
       })});
  // CMP-5: "byte count (64-bit)".
  add({"atomics-tell-no-bytes", "CMP-5", S::corner, "", "", entry([](OnEntry& m, Completion& c) {
         if (is_atomic(c.operation) && c.status == Status::ok && m.strikes()) c.bytes = 0;
         return 1;
       })});
  add({"the-last-immediate-sticks", "CMP-5", S::corner, "", "", made<TheLastImmediateSticks>()});
  // CMP-5: "the program's own value for it".
  add({"the-end-forgets-the-program-s-value", "CMP-5", S::corner, "", "",
       entry([](OnEntry& m, Completion& c) {
         if (c.operation == Operation::endpoint_ended && m.strikes()) c.user_value = 0;
         return 1;
       })});
  add({"now-and-then-a-context-of-the-one-before",
       "CMP-5",
       S::rare,
       "",
       "",
       [] {
         const auto last = std::make_shared<std::atomic<std::uint64_t>>(0);
         return std::make_unique<OnEntry>([last](OnEntry& m, Completion& c) {
           if (!is_send_side(c.operation)) return 1;
           const std::uint64_t before = last->exchange(c.context);
           if (before != c.context && m.strikes()) c.context = before;
           return 1;
         });
       },
       {},
       16});

  add({"room-comes-back-with-the-last", "CMP-6", S::corner, "", "", made<RoomComesBackWithTheLast>()});
  add({"unsignalled-ones-need-room", "CMP-6", S::corner, "", "", made<UnsignalledOnesNeedRoom>()});
  add({"one-room-less-than-asked", "CMP-6", S::always, "", "", made<OneRoomLessThanAsked>()});
}

}  // namespace mutants
