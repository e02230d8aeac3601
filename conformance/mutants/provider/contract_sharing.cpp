// How shared receive queues go wrong (RCQ), by a reader of the contract who had not seen the
// rules' tests.
#include <algorithm>
#include <map>
#include <set>

#include "disguise.hpp"
#include "mutant.hpp"

namespace mutants {
namespace {

// Knows which endpoints share receives, where they complete, and what waits in the shared queue. For programs
// with one shared queue in a context.
class KnowsSharing : public Behaviour {
 public:
  void prepared(const provider::EndpointRequest& request) override {
    if (request.shared_receives == nullptr) return;
    const std::lock_guard lock(mutex_);
    sharing_[request.id] = request.user_value;
    queue_ = static_cast<Queue*>(request.receive_queue);
  }
  PostResult post_shared(Receives& receives, const ReceiveRequest* requests, std::size_t count) override {
    const std::lock_guard lock(mutex_);
    const std::size_t before = waiting_.size();
    const PostResult result = Behaviour::post_shared(receives, requests, count);
    for (std::size_t i = 0; i < result.accepted; ++i) waiting_.push_back(requests[i].context);
    rose(before, waiting_.size());
    return result;
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      if (!sharing_.contains(out[i].endpoint_id)) continue;
      if (out[i].operation == Operation::receive && !waiting_.empty()) waiting_.pop_front();
      i += entry(queue, out, i, count, room);
    }
    return count;
  }
  void gone(Queue& queue) override {
    const std::lock_guard lock(mutex_);
    if (queue_ == &queue) queue_ = nullptr;
  }

 protected:
  // With the mutex held. Returns how many entries it put in before this one.
  virtual std::size_t entry(Queue& /*queue*/, Completion* /*out*/, std::size_t /*at*/, std::size_t& /*count*/,
                            std::size_t /*room*/) {
    return 0;
  }
  virtual void rose(std::size_t /*before*/, std::size_t /*after*/) {}

  std::mutex mutex_;
  std::map<std::uint32_t, std::uint64_t> sharing_;  // by endpoint: the program's value
  std::deque<std::uint64_t> waiting_;               // contexts
  Queue* queue_ = nullptr;
};

// RCQ-1: "It survives any endpoint's end, and so do the receives not yet taken."
class TheEndCancelsASharedReceive final : public KnowsSharing {
  std::size_t entry(Queue& /*queue*/, Completion* out, std::size_t at, std::size_t& count,
                    std::size_t room) override {
    if (out[at].operation != Operation::endpoint_ended || waiting_.empty() || count >= room || !strikes())
      return 0;
    std::copy_backward(out + at, out + count, out + count + 1);
    ++count;
    out[at].operation = Operation::receive;
    out[at].status = Status::cancelled;
    out[at].context = waiting_.front();
    return 1;
  }
};

// RCQ-1: "its endpoints' receive completions and `endpoint_ended` go there".
class TheEndGoesToTheSendQueue final : public Behaviour {
 public:
  void prepared(const provider::EndpointRequest& request) override {
    if (request.shared_receives == nullptr || request.send_queue == request.receive_queue) return;
    const std::lock_guard lock(mutex_);
    send_queues_[request.id] = static_cast<Queue*>(request.send_queue);
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto other = send_queues_.find(out[i].endpoint_id);
      if (out[i].operation == Operation::endpoint_ended && other != send_queues_.end() && strikes()) {
        other->second->inject(out[i]);
      } else {
        out[kept++] = out[i];
      }
    }
    return kept;
  }
  void gone(Queue& queue) override {
    const std::lock_guard lock(mutex_);
    std::erase_if(send_queues_, [&](const auto& item) { return item.second == &queue; });
  }

 private:
  std::mutex mutex_;
  std::map<std::uint32_t, Queue*> send_queues_;
};

// RCQ-1: the receive "from then on belongs to that endpoint", and carries its value.
class SharedReceivesCarryTheFirstValue final : public KnowsSharing {
  std::size_t entry(Queue& /*queue*/, Completion* out, std::size_t at, std::size_t& /*count*/,
                    std::size_t /*room*/) override {
    if (out[at].operation == Operation::receive && out[at].user_value != sharing_.begin()->second &&
        strikes())
      out[at].user_value = sharing_.begin()->second;
    return 0;
  }
};

// RCQ-1: a message "takes its next receive": in the order they were posted.
class SharedBatchesBackwards final : public Behaviour {
 public:
  PostResult post_shared(Receives& receives, const ReceiveRequest* requests, std::size_t count) override {
    if (count < 2 || !strikes()) return Behaviour::post_shared(receives, requests, count);
    std::vector<ReceiveRequest> backwards(requests, requests + count);
    std::reverse(backwards.begin(), backwards.end());
    return Behaviour::post_shared(receives, backwards.data(), count);
  }
};

// RCQ-1: "the receives not yet taken" stay when an endpoint ends; here the next one posted is lost.
class AnEndCostsASharedReceive final : public KnowsSharing {
 public:
  PostResult post_shared(Receives& receives, const ReceiveRequest* requests, std::size_t count) override {
    if (count == 1 && ended_.exchange(false) && strikes()) return {Status::ok, 1};
    return KnowsSharing::post_shared(receives, requests, count);
  }

 private:
  std::size_t entry(Queue& /*queue*/, Completion* out, std::size_t at, std::size_t& /*count*/,
                    std::size_t /*room*/) override {
    if (out[at].operation == Operation::endpoint_ended) ended_ = true;
    return 0;
  }
  std::atomic<bool> ended_{false};
};

// RCQ-2: "reported once per crossing", and at each.
class MarksOnlyOnce final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const bool again = out[i].operation == Operation::low_water && !marked_.insert(&queue).second;
      if (!again || !strikes()) out[kept++] = out[i];
    }
    return kept;
  }
  void gone(Queue& queue) override {
    const std::lock_guard lock(mutex_);
    marked_.erase(&queue);
  }

 private:
  std::mutex mutex_;
  std::set<Queue*> marked_;
};

// RCQ-2: "once per crossing": to set a mark above what is there is none.
class MarksWhenSet final : public KnowsSharing {
 public:
  void set_low_water(Receives& receives, std::uint32_t mark) override {
    Behaviour::set_low_water(receives, mark);
    const std::lock_guard lock(mutex_);
    if (mark <= waiting_.size() || queue_ == nullptr || !strikes()) return;
    Completion report;
    report.operation = Operation::low_water;
    queue_->inject(report);
  }
};

// RCQ-2: the crossing downwards.
class MarksWhenRising final : public KnowsSharing {
 public:
  void set_low_water(Receives& receives, std::uint32_t mark) override {
    Behaviour::set_low_water(receives, mark);
    const std::lock_guard lock(mutex_);
    mark_ = mark;
  }

 private:
  void rose(std::size_t before, std::size_t after) override {
    if (before >= mark_ || after < mark_ || queue_ == nullptr || !strikes()) return;
    Completion report;
    report.operation = Operation::low_water;
    queue_->inject(report);
  }
  std::uint32_t mark_ = 0;
};

// RCQ-2: a mark of 0 turns the reports off.
class MarksCannotBeTurnedOff final : public Behaviour {
 public:
  void set_low_water(Receives& receives, std::uint32_t mark) override {
    if (mark == 0 && strikes()) return;
    Behaviour::set_low_water(receives, mark);
  }
};

}  // namespace

void add_contract_sharing(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) {
    mutant.from_contract = true;
    mutants.push_back(std::move(mutant));
  };

  add({"the-end-cancels-a-shared-receive", "RCQ-1", S::corner, "", "", made<TheEndCancelsASharedReceive>()});
  add({"the-end-goes-to-the-send-queue", "RCQ-1", S::corner, "", "", made<TheEndGoesToTheSendQueue>()});
  add({"shared-receives-carry-the-first-value", "RCQ-1", S::corner, "", "",
       made<SharedReceivesCarryTheFirstValue>()});
  add({"shared-batches-backwards", "RCQ-1", S::always, "", "", made<SharedBatchesBackwards>()});
  add({"an-end-costs-a-shared-receive", "RCQ-1", S::corner, "", "", made<AnEndCostsASharedReceive>()});

  add({"marks-only-once", "RCQ-2", S::corner, "", "", made<MarksOnlyOnce>()});
  add({"marks-when-set", "RCQ-2", S::corner, "", "", made<MarksWhenSet>()});
  add({"marks-when-rising", "RCQ-2", S::always, "", "", made<MarksWhenRising>()});
  add({"marks-cannot-be-turned-off", "RCQ-2", S::corner, "", "", made<MarksCannotBeTurnedOff>()});
  // RCQ-2: "is reported once per crossing".
  add({"forgets-a-mark-now-and-then",
       "RCQ-2",
       S::rare,
       "",
       "",
       entry([](OnEntry& m, Completion& c) {
         return c.operation == Operation::low_water && m.strikes() ? 0 : 1;
       }),
       {},
       3});
  // The report carries the queue's own value (receive_queue.hpp).
  add({"marks-without-the-queue-s-value", "RCQ-2", S::always, "", "", entry([](OnEntry& m, Completion& c) {
         if (c.operation == Operation::low_water && c.user_value != 0 && m.strikes()) c.user_value = 0;
         return 1;
       })});
}

}  // namespace mutants
