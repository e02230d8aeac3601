// Mutants of the rules ORD.
#include <map>

#include "mutant.hpp"

namespace mutants {
namespace {

// Two messages of a batch change places.
class SwapsMessages final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count != 1 || requests[0].operation != Operation::send || requests[0].segments.size() != 1 ||
        length_of(requests[0]) > most_) {
      (void)release(endpoint);
      return Behaviour::post(endpoint, requests, count);
    }
    const std::unique_lock lock(mutex_);
    Held& held = held_[&endpoint];
    if (!held.full) {
      if (!strikes()) return Behaviour::post(endpoint, requests, count);
      // Is it taken at all? Only then may it be held.
      if (endpoint.inner().post(nullptr, 0).status != Status::ok)
        return Behaviour::post(endpoint, requests, count);
      held.full = true;
      held.request = requests[0];
      held.segment = requests[0].segments[0];
      held.inline_bytes.clear();
      if (has(held.request.flags, Flags::inline_data) && held.segment.region == 0) {
        const auto* const bytes = reinterpret_cast<const std::byte*>(held.segment.offset);
        held.inline_bytes.assign(bytes, bytes + held.segment.length);
      }
      return {Status::ok, 1};
    }
    const PostResult result = Behaviour::post(endpoint, requests, count);
    post_held(endpoint, held);
    return result;
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    {
      const std::unique_lock lock(mutex_);
      for (auto& [endpoint, held] : held_) {
        if (held.full) post_held(*endpoint, held);
      }
    }
    return Behaviour::poll(queue, out, room);
  }
  void drain(Endpoint& endpoint) override {
    (void)release(endpoint);
    Behaviour::drain(endpoint);
  }
  void destroyed(Endpoint& endpoint) override {
    const std::unique_lock lock(mutex_);
    held_.erase(&endpoint);
  }

 private:
  struct Held {
    bool full = false;
    WorkRequest request;
    Segment segment;
    std::vector<std::byte> inline_bytes;
  };
  static void post_held(Endpoint& endpoint, Held& held) {
    if (!held.inline_bytes.empty()) {
      held.segment.offset = reinterpret_cast<std::uintptr_t>(held.inline_bytes.data());
    }
    held.request.segments = {&held.segment, 1};
    if (endpoint.inner().post(&held.request, 1).status != Status::again) held.full = false;
  }
  bool release(Endpoint& endpoint) {
    const std::unique_lock lock(mutex_);
    const auto held = held_.find(&endpoint);
    if (held == held_.end() || !held->second.full) return false;
    post_held(endpoint, held->second);
    return true;
  }

  static constexpr std::uint64_t most_ = 1 << 20;
  std::mutex mutex_;
  std::map<Endpoint*, Held> held_;
};

// Holds an operation back until the next one has been posted.
class OvertakenBy : public Behaviour {
 public:
  OvertakenBy(Operation slow, bool only_by_fenced) : slow_(slow), only_by_fenced_(only_by_fenced) {}
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count != 1) return Behaviour::post(endpoint, requests, count);
    const std::lock_guard lock(mutex_);
    if (!full_ && requests[0].operation == slow_ && requests[0].segments.size() == 1 &&
        length_of(requests[0]) != 0 && endpoint.inner().post(nullptr, 0).status == Status::ok) {
      full_ = true;
      endpoint_ = &endpoint;
      request_ = requests[0];
      segment_ = requests[0].segments[0];
      return {Status::ok, 1};
    }
    if (!full_ || endpoint_ != &endpoint) return Behaviour::post(endpoint, requests, count);
    const bool overtakes = !only_by_fenced_ || has(requests[0].flags, Flags::fence);
    if (!overtakes) let_go();
    const PostResult result = Behaviour::post(endpoint, requests, count);
    if (full_ && result.status == Status::ok) {
      (void)strikes();
      let_go();
    }
    return result;
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    {
      const std::lock_guard lock(mutex_);
      if (full_) let_go();
    }
    return Behaviour::poll(queue, out, room);
  }
  void destroyed(Endpoint& endpoint) override {
    const std::lock_guard lock(mutex_);
    if (endpoint_ == &endpoint) full_ = false;
  }

 private:
  void let_go() {
    request_.segments = {&segment_, 1};
    if (endpoint_->inner().post(&request_, 1).status != Status::again) full_ = false;
  }

  const Operation slow_;
  const bool only_by_fenced_;
  std::mutex mutex_;
  bool full_ = false;
  Endpoint* endpoint_ = nullptr;
  WorkRequest request_;
  Segment segment_;
};

class LateWrites final : public OvertakenBy {
 public:
  LateWrites() : OvertakenBy(Operation::write, false) {}
};
class DeafToFences final : public OvertakenBy {
 public:
  DeafToFences() : OvertakenBy(Operation::read, true) {}
};

// Two neighbouring entries of the send side change places.
class SwapsCompletions final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    for (std::size_t i = 0; i + 1 < count; ++i) {
      if (!is_send_side(out[i]) || !is_send_side(out[i + 1]) || out[i].endpoint_id != out[i + 1].endpoint_id)
        continue;
      if (strikes()) std::swap(out[i], out[i + 1]);
      ++i;
    }
    return count;
  }
};

}  // namespace

void add_order(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) { mutants.push_back(std::move(mutant)); };
  add({"messages-overtake",
       "ORD-1",
       S::always,
       "messages_arrive_in_posting_order_whatever",
       "",
       made<SwapsMessages>(),
       {"MEM_2", "ERR_2"}});
  add({"messages-overtake-now-and-then",
       "ORD-1",
       S::rare,
       "",
       "",
       made<SwapsMessages>(),
       {"MEM_2", "ERR_2"},
       100});
  add({"writes-after-the-message",
       "ORD-2",
       S::always,
       "",
       "",
       made<LateWrites>(),
       {"MEM_2", "OPS_8", "ERR_2"}});
  add({"completions-out-of-order", "ORD-3", S::always, "", "", made<SwapsCompletions>(), {"OPS_8", "ERR_2"}});
  add({"completions-out-of-order-now-and-then", "ORD-3", S::rare, "", "", made<SwapsCompletions>(), {}, 50});
  add({"deaf-to-fences", "ORD-4", S::always, "", "", made<DeafToFences>(), {"MEM_2", "OPS_8", "ERR_2"}});
}

}  // namespace mutants
