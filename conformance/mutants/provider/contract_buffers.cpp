// How the program's memory fares when operations complete (CMP-3, CMP-7), by a reader of the contract who had
// not seen the rules' tests.
#include <map>

#include "disguise.hpp"
#include "mutant.hpp"
#include "overtaking.hpp"

namespace mutants {
namespace {

[[nodiscard]] bool is_failure(const Completion& entry) { return entry.status != Status::ok; }

// CMP-3: "Of a read or atomic: the result is there."
class CompletesEarly final : public Behaviour {
 public:
  using Kind = std::function<bool(const WorkRequest&)>;
  explicit CompletesEarly(Kind kind) : kind_(std::move(kind)) {}
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    PostResult result;
    if (count == 0) return Behaviour::post(endpoint, requests, count);
    for (; result.accepted < count; ++result.accepted) {
      WorkRequest request = requests[result.accepted];
      const bool early = is_signalled(request) && kind_(request);
      if (early) request.flags |= Flags::unsignalled;
      result.status = Behaviour::post(endpoint, &request, 1).status;
      if (result.status != Status::ok) break;
      if (!early) continue;
      (void)strikes();
      endpoint.send_queue().inject(endpoint.completion_of(requests[result.accepted]));
    }
    return result;
  }

 private:
  const Kind kind_;
};
[[nodiscard]] auto early(const CompletesEarly::Kind& kind) {
  return [=] { return std::make_unique<CompletesEarly>(kind); };
}

// Knows the memory of the receives that come out of a queue; they are an endpoint's own.
class KnowsReceives : public KnowsMemory {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    const std::lock_guard lock(mutex_);
    const PostResult result = Behaviour::post_receives(endpoint, requests, count);
    for (std::size_t i = 0; i < result.accepted; ++i) {
      const auto& segments = requests[i].segments;
      posted_[endpoint.id()].push_back(segments.empty() ? Segment{} : segments.back());
    }
    return result;
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    before_poll();
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].operation != Operation::receive) continue;
      auto& list = posted_[out[i].endpoint_id];
      if (list.empty()) continue;
      taken(out[i], list.front());
      list.pop_front();
    }
    return count;
  }

 protected:
  virtual void before_poll() {}
  virtual void taken(const Completion& entry, const Segment& last) = 0;
  std::mutex mutex_;

 private:
  std::map<std::uint32_t, std::deque<Segment>> posted_;
};

// CMP-3: "After any completion, failed ones included, nothing touches the local buffer again."
class TouchesReceivesLater final : public KnowsReceives {
 public:
  explicit TouchesReceivesLater(bool failed) : failed_(failed) {}

 private:
  void before_poll() override {
    const std::lock_guard lock(mutex_);
    for (const Segment& segment : later_) {
      with_region(segment.region, [&](std::span<std::byte> bytes) {
        if (segment.length > 0 && strikes()) bytes[segment.offset] ^= std::byte{0xff};
      });
    }
    later_.clear();
  }
  void taken(const Completion& entry, const Segment& last) override {
    if (is_failure(entry) == failed_) later_.push_back(last);
  }
  const bool failed_;
  std::vector<Segment> later_;
};

// CMP-7: "A failed receive […] its buffer may have changed, never a byte outside."
class TouchesBesideFailedReceives final : public KnowsReceives {
 public:
  TouchesBesideFailedReceives(Status status, bool before) : status_(status), before_(before) {}

 private:
  void taken(const Completion& entry, const Segment& last) override {
    if (entry.status != status_) return;
    with_region(last.region, [&](std::span<std::byte> bytes) {
      const std::uint64_t at = before_ ? last.offset - 1 : last.offset + last.length;
      if (at < bytes.size() && strikes()) bytes[at] ^= std::byte{0xff};  // before 0 there is nothing
    });
  }
  const Status status_;
  const bool before_;
};
[[nodiscard]] auto touches_beside(Status status, bool before) {
  return [=] { return std::make_unique<TouchesBesideFailedReceives>(status, before); };
}

// CMP-7: "no effect, part or all of it, at most once": what is under way is sent once more.
class AtomicsAreRepeatedAtTheEnd final : public Disguise {
 public:
  void open(provider::Context& /*inner*/, const provider::OpenRequest& request) override {
    is_single_ = request.thread_mode == weft::ThreadMode::single;
  }
  void end(Endpoint& endpoint, const provider::EndOrder& order) override {
    {
      const std::lock_guard lock(mutex_);
      for (const Posted& posted : under_way(endpoint)) {
        if (is_single_ || posted.told.operation != Operation::fetch_add || !strikes()) continue;
        WorkRequest request;
        request.operation = Operation::fetch_add;
        request.flags = Flags::unsignalled;
        request.segments = {&posted.first, 1};
        request.remote = posted.remote;
        request.operand = posted.operand;
        (void)endpoint.inner().post(&request, 1);
      }
    }
    Disguise::end(endpoint, order);
  }

 private:
  bool is_single_ = false;
};

}  // namespace

void add_contract_buffers(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) {
    mutant.from_contract = true;
    mutants.push_back(std::move(mutant));
  };

  add({"atomics-complete-early", "CMP-3", S::always, "", "",
       early([](const WorkRequest& w) { return is_atomic(w.operation); })});
  add({"large-reads-complete-early",
       "CMP-3",
       S::corner,
       "",
       "",
       early([](const WorkRequest& w) { return w.operation == Operation::read && length_of(w) > 32768; }),
       {"ERR_2"}});
  add({"touches-failed-receives-later", "CMP-3", S::corner, "", "",
       [] { return std::make_unique<TouchesReceivesLater>(true); }});
  add({"touches-finished-receives-later",
       "CMP-3",
       S::always,
       "",
       "",
       [] { return std::make_unique<TouchesReceivesLater>(false); },
       {"OPS_6"}});
  add({"touches-what-follows-a-truncated-receive", "CMP-7", S::always, "", "",
       touches_beside(Status::truncated, false)});
  add({"touches-what-precedes-a-cancelled-receive", "CMP-7", S::corner, "", "",
       touches_beside(Status::cancelled, true)});
  add({"touches-what-follows-a-cancelled-receive", "CMP-7", S::corner, "", "",
       touches_beside(Status::cancelled, false)});
  add({"atomics-are-repeated-at-the-end", "CMP-7", S::corner, "", "", made<AtomicsAreRepeatedAtTheEnd>()});
  // The header says: bytes are "0 for failures"; CMP-5 has the failure's entry.
  add({"failed-sends-tell-bytes",
       "CMP-5",
       S::corner,
       "",
       "",
       entry([](OnEntry& m, Completion& c) {
         if (is_failure(c) && is_send_side(c.operation) && m.strikes()) c.bytes = 64;
         return 1;
       }),
       {"ERR_2"}});
}

}  // namespace mutants
