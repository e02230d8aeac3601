// How order goes wrong (ORD), by a reader of the contract who had not seen the rules' tests.
#include <algorithm>
#include <map>

#include "disguise.hpp"
#include "mutant.hpp"
#include "overtaking.hpp"

namespace mutants {
namespace {

[[nodiscard]] bool is_send(const WorkRequest& request) { return request.operation == Operation::send; }
[[nodiscard]] bool is_read(const WorkRequest& request) { return request.operation == Operation::read; }
[[nodiscard]] bool is_write(const WorkRequest& request) { return request.operation == Operation::write; }
[[nodiscard]] bool is_immediate_write(const WorkRequest& request) {
  return request.operation == Operation::write_with_immediate;
}
[[nodiscard]] bool is_any_atomic(const WorkRequest& request) { return is_atomic(request.operation); }
[[nodiscard]] bool is_message(const WorkRequest& request) {
  return is_send(request) || is_immediate_write(request);
}
[[nodiscard]] bool is_large(const WorkRequest& request) { return length_of(request) > 32768; }
[[nodiscard]] bool is_fenced(const WorkRequest& request) { return has(request.flags, Flags::fence); }
[[nodiscard]] auto both(const Overtaking::Kind& one, const Overtaking::Kind& other) {
  return [=](const WorkRequest& request) { return one(request) && other(request); };
}
[[nodiscard]] auto no(const Overtaking::Kind& kind) {
  return [=](const WorkRequest& request) { return !kind(request); };
}

[[nodiscard]] bool are_of_one_endpoint(const Completion& one, const Completion& other) {
  return one.endpoint_id == other.endpoint_id && is_send_side(one.operation) == is_send_side(other.operation);
}

// ORD-3: what completes next to one another is swapped when a function says so.
class SwapsNeighbours final : public Behaviour {
 public:
  using Pair = std::function<bool(const Completion& first, const Completion& second)>;
  explicit SwapsNeighbours(Pair pair) : pair_(std::move(pair)) {}
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    for (std::size_t i = 1; i < count; ++i) {
      if (!are_of_one_endpoint(out[i - 1], out[i]) || !pair_(out[i - 1], out[i]) || !strikes()) continue;
      std::swap(out[i - 1], out[i]);
      ++i;
    }
    return count;
  }

 private:
  const Pair pair_;
};
[[nodiscard]] auto swaps(const SwapsNeighbours::Pair& pair) {
  return [=] { return std::make_unique<SwapsNeighbours>(pair); };
}

// ORD-3: "Send-side completions of one endpoint are reported in posting order", from one poll to the next
// too.
class OneWaitsForTheNextPoll final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    if (room < 2) return Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    std::size_t count = Behaviour::poll(queue, out, room - 1);
    auto& held = held_[&queue];
    if (held) {
      out[count++] = *held;
      held.reset();
    } else if (count > 0 && is_send_side(out[count - 1].operation) && strikes()) {
      held = out[--count];
    }
    return count;
  }
  bool arm(Queue& queue) override {
    const std::lock_guard lock(mutex_);
    return !held_[&queue] && Behaviour::arm(queue);
  }
  void gone(Queue& queue) override {
    const std::lock_guard lock(mutex_);
    held_.erase(&queue);
  }

 private:
  std::mutex mutex_;
  std::map<Queue*, std::optional<Completion>> held_;
};

// ORD-3, in a queue whose ring has gone round.
class OrderIsLostWhenTheRingWraps final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    std::uint64_t& seen = seen_[&queue];
    for (std::size_t i = 0; i < count; ++i, ++seen) {
      if (seen % 256 < 128 || seen < 256 || i == 0) continue;
      if (are_of_one_endpoint(out[i - 1], out[i]) && out[i].operation != Operation::endpoint_ended &&
          out[i - 1].operation != Operation::connect && strikes()) {
        std::swap(out[i - 1], out[i]);
        ++i;
        ++seen;
      }
    }
    return count;
  }
  void gone(Queue& queue) override {
    const std::lock_guard lock(mutex_);
    seen_.erase(&queue);
  }

 private:
  std::mutex mutex_;
  std::map<Queue*, std::uint64_t> seen_;
};

// ORD-4: "takes effect after all earlier reads, writes and atomics": in a batch too.
class FencesOfABatchAreNotSeen final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    std::vector<WorkRequest> open(requests, requests + count);
    bool changed = false;
    for (std::size_t i = 1; i < count; ++i) {
      if (!is_fenced(open[i])) continue;
      open[i].flags = open[i].flags & (Flags::unsignalled | Flags::inline_data | Flags::with_immediate);
      changed = true;
    }
    if (changed) (void)strikes();
    return Behaviour::post(endpoint, open.data(), count);
  }
};

}  // namespace

void add_contract_order(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) {
    mutant.from_contract = true;
    mutants.push_back(std::move(mutant));
  };

  // ORD-1: "Messages on one endpoint arrive in the order posted, whatever their sizes and paths".
  add({"small-messages-overtake-large-ones", "ORD-1", S::corner, "", "",
       overtaken(both(is_send, is_large), both(is_send, no(is_large)))});
  add({"messages-overtake-writes-with-immediate", "ORD-1", S::corner, "", "",
       overtaken(is_immediate_write, is_send)});
  add({"writes-with-immediate-overtake-messages", "ORD-1", S::corner, "", "",
       overtaken(is_send, is_immediate_write)});
  add({"inline-messages-overtake", "ORD-1", S::corner, "", "",
       overtaken(both(is_send, no(is_inline)), both(is_send, is_inline))});
  add({"empty-messages-overtake", "ORD-1", S::corner, "", "",
       overtaken(is_send, [](const WorkRequest& w) { return is_send(w) && length_of(w) == 0; })});

  // ORD-2: "all writes and atomics posted before that send (or write-with-immediate) […] are visible".
  add({"atomics-after-the-message", "ORD-2", S::always, "", "", overtaken(is_any_atomic, is_message)});
  add({"large-writes-after-an-immediate", "ORD-2", S::corner, "", "",
       overtaken(both(is_write, is_large), is_immediate_write)});
  add({"inline-writes-after-the-message",
       "ORD-2",
       S::corner,
       "",
       "",
       overtaken(both(is_write, is_inline), is_message),
       {"OPS_6"}});
  add({"now-and-then-a-write-after-the-message",
       "ORD-2",
       S::rare,
       "",
       "",
       overtaken(is_write, is_message),
       {"OPS_6"},
       8});

  // ORD-3, for failures too.
  add({"what-is-cancelled-comes-backwards",
       "ORD-3",
       S::corner,
       "",
       "",
       swaps([](const Completion& first, const Completion& second) {
         return first.status == Status::cancelled && second.status == Status::cancelled;
       }),
       {"ERR_2"}});
  add({"reads-complete-late",
       "ORD-3",
       S::corner,
       "",
       "",
       swaps([](const Completion& first, const Completion& second) {
         return first.operation == Operation::read && is_send_side(second.operation) &&
                second.operation != Operation::read;
       }),
       {"OPS_8", "ERR_2"}});
  add({"receives-with-an-immediate-first", "ORD-3", S::corner, "", "",
       swaps([](const Completion& first, const Completion& second) {
         return first.operation == Operation::receive && second.operation == Operation::receive &&
                !first.has_immediate && second.has_immediate;
       })});
  add({"one-waits-for-the-next-poll", "ORD-3", S::rare, "", "", made<OneWaitsForTheNextPoll>(), {}, 8});
  add({"order-is-lost-when-the-ring-wraps", "ORD-3", S::corner, "", "", made<OrderIsLostWhenTheRingWraps>()});

  // ORD-4: "takes effect after all earlier reads, writes and atomics of that endpoint have".
  add({"fenced-sends-pass-reads", "ORD-4", S::corner, "", "", overtaken(is_read, both(is_send, is_fenced))});
  add({"fenced-writes-pass-reads", "ORD-4", S::always, "", "",
       overtaken(is_read, both(is_write, is_fenced))});
  add({"fenced-reads-pass-writes",
       "ORD-4",
       S::always,
       "",
       "",
       overtaken(is_write, both(is_read, is_fenced)),
       {"OPS_6"}});
  add({"fenced-writes-pass-atomics", "ORD-4", S::corner, "", "",
       overtaken(is_any_atomic, both(is_write, is_fenced))});
  add({"fenced-atomics-pass-writes",
       "ORD-4",
       S::corner,
       "",
       "",
       overtaken(is_write, both(is_any_atomic, is_fenced)),
       {"OPS_6"}});
  add({"fences-of-a-batch-are-not-seen", "ORD-4", S::corner, "", "", made<FencesOfABatchAreNotSeen>()});
  add({"now-and-then-a-fenced-one-passes",
       "ORD-4",
       S::rare,
       "",
       "",
       overtaken(no(is_fenced), is_fenced),
       {"OPS_6"},
       4});
}

}  // namespace mutants
