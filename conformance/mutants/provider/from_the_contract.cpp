// Mutants written by a reader of the contract, each from the words of its rule and without a look at the
// rule's tests.
#include <limits>
#include <map>
#include <set>

#include "mutant.hpp"

namespace mutants {
namespace {

// OPS-3: "Operations posted behind such a send may wait for it […]; other endpoints do not".
class AWaitingSendHoldsUpOthers final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [other, sends] : waiting_) {
      if (other != endpoint.id() && sends > 0 && count > 0 && strikes()) return {Status::again, 0};
    }
    const PostResult result = Behaviour::post(endpoint, requests, count);
    for (std::size_t i = 0; i < result.accepted; ++i) {
      if (requests[i].operation == Operation::send && !has(requests[i].flags, Flags::unsignalled))
        ++waiting_[endpoint.id()];
    }
    return result;
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].operation == Operation::send) --waiting_[out[i].endpoint_id];
      if (out[i].operation == Operation::endpoint_ended) waiting_.erase(out[i].endpoint_id);
    }
    return count;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint32_t, int> waiting_;
};

// ORD-3: "receives posted to an endpoint's own queue likewise" are reported in posting order.
class SmallReceivesFirst final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    for (std::size_t i = 1; i < count; ++i) {
      const bool both = out[i].operation == Operation::receive &&
                        out[i - 1].operation == Operation::receive &&
                        out[i].endpoint_id == out[i - 1].endpoint_id;
      if (both && out[i].bytes < out[i - 1].bytes && strikes()) std::swap(out[i], out[i - 1]);
    }
    return count;
  }
};

// ERR-2: "later posts answer not_connected".
class TakesReceivesAfterTheEnd final : public Behaviour {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    const PostResult result = Behaviour::post_receives(endpoint, requests, count);
    if (result.status != Status::not_connected || !strikes()) return result;
    return {Status::ok, count};
  }
};

// RCQ-1: "a message on any of them takes its next receive, which from then on belongs to that endpoint".
class SharedReceivesBelongToTheFirst final : public Behaviour {
 public:
  void prepared(const provider::EndpointRequest& request) override {
    if (request.shared_receives == nullptr) return;
    const std::lock_guard lock(mutex_);
    sharing_.insert(request.id);
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].operation != Operation::receive || !sharing_.contains(out[i].endpoint_id)) continue;
      if (out[i].endpoint_id != *sharing_.begin() && strikes()) out[i].endpoint_id = *sharing_.begin();
    }
    return count;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint32_t> sharing_;
};

// MEM-1: "grants no more, whatever the fabric would allow".
class WhoMayWriteMayRead final : public Behaviour {
 public:
  void registering(weft::RegistrationRequest& request) override {
    if (weft::has(request.access, Access::remote_write) && !weft::has(request.access, Access::remote_read) &&
        strikes()) {
      request.access |= Access::remote_read;
    }
  }
};

// MEM-3: "The key carries range and rights".
class KeysReachAByteFurther final : public Behaviour {
 public:
  provider::Endpoint::Imported import_key(Endpoint& endpoint, std::span<const std::byte> key) override {
    auto imported = Behaviour::import_key(endpoint, key);
    (void)strikes();
    ++imported.length;
    return imported;
  }
};

// PRG-3: "each completion wakes at least one waiter".
class EveryThirdWakeIsLost final : public Behaviour {
 public:
  void readable(Queue& queue) override {
    if (!strikes()) Behaviour::readable(queue);
  }
  int descriptor(Queue& /*queue*/) override { return -1; }
};

// OPS-9: "Plain writes and reads have no limit below 2^40 (the library splits them)".
class WritesStopAtAMebibyte final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    constexpr std::uint64_t most = 1 << 20;
    if (count != 1 || requests[0].operation != Operation::write || requests[0].segments.size() != 1 ||
        requests[0].segments[0].length <= most || !strikes()) {
      return Behaviour::post(endpoint, requests, count);
    }
    Segment shorter = requests[0].segments[0];
    shorter.length = most;
    WorkRequest request = requests[0];
    request.segments = {&shorter, 1};
    return Behaviour::post(endpoint, &request, 1);
  }
};

// OPS-7: "at least 4 segments on send, receive, write, read".
class SwapsTheMiddleSegments final : public Behaviour {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    if (count != 1 || requests[0].segments.size() < 4 || !strikes())
      return Behaviour::post_receives(endpoint, requests, count);
    std::vector<Segment> segments(requests[0].segments.begin(), requests[0].segments.end());
    std::swap(segments[1], segments[2]);
    const ReceiveRequest request{requests[0].context, segments};
    return Behaviour::post_receives(endpoint, &request, 1);
  }
};

}  // namespace

void add_from_the_contract(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) {
    mutant.from_contract = true;
    mutants.push_back(std::move(mutant));
  };
  add({"a-waiting-send-holds-up-others",
       "OPS-3",
       S::corner,
       "",
       "",
       made<AWaitingSendHoldsUpOthers>(),
       {"ERR_2", "RCQ_1", "OPS_6", "OPS_8", "MEM_2"}});
  // OPS-4: "A send may carry an immediate too", and 0 is one.
  add({"an-immediate-of-zero-is-none", "OPS-4", S::corner, "", "", entry([](OnEntry& m, Completion& c) {
         if (c.has_immediate && c.immediate == 0 && m.strikes()) c.has_immediate = false;
         return 1;
       })});
  // OPS-5: "64-bit fetch-and-add".
  add({"adds-32-bits-only", "OPS-5", S::corner, "", "", request([](OnRequest& m, Endpoint&, WorkRequest& w) {
         if (w.operation == Operation::fetch_add && w.operand > std::numeric_limits<std::uint32_t>::max() &&
             m.strikes())
           w.operand &= std::numeric_limits<std::uint32_t>::max();
       })});
  add({"swaps-the-middle-segments", "OPS-7", S::corner, "", "", made<SwapsTheMiddleSegments>()});
  add({"writes-stop-at-a-mebibyte", "OPS-9", S::corner, "", "", made<WritesStopAtAMebibyte>()});
  // OPS-10: "returned unchanged".
  add({"the-greatest-context-is-none", "OPS-10", S::corner, "", "", entry([](OnEntry& m, Completion& c) {
         if (c.context == std::numeric_limits<std::uint64_t>::max() && m.strikes()) c.context = 0;
         return 1;
       })});
  add({"small-receives-first", "ORD-3", S::corner, "", "", made<SmallReceivesFirst>()});
  add({"takes-receives-after-the-end",
       "ERR-2",
       S::corner,
       "",
       "",
       made<TakesReceivesAfterTheEnd>(),
       {"ERR_2"}});
  add({"who-may-write-may-read", "MEM-1", S::corner, "", "", made<WhoMayWriteMayRead>()});
  add({"keys-reach-a-byte-further", "MEM-3", S::corner, "", "", made<KeysReachAByteFurther>(), {"MEM_3"}});
  add({"shared-receives-belong-to-the-first",
       "RCQ-1",
       S::corner,
       "",
       "",
       made<SharedReceivesBelongToTheFirst>(),
       {"RCQ_1"}});
  add({"every-third-wake-is-lost", "PRG-3", S::rare, "", "", made<EveryThirdWakeIsLost>(), {}, 3});
}

}  // namespace mutants
