// How limits, contexts and flushes go wrong (OPS-9 to OPS-11), by a reader of the contract who had not seen
// the rules' tests.
#include <algorithm>
#include <map>
#include <set>

#include "disguise.hpp"
#include "mutant.hpp"
#include "overtaking.hpp"

namespace mutants {
namespace {

// OPS-9: "Limits are stated truthfully".
class StatesOther final : public Behaviour {
 public:
  using Edit = std::function<void(weft::Limits&)>;
  explicit StatesOther(Edit edit) : edit_(std::move(edit)) {}
  // Once it is up: before, the core would not let it connect.
  weft::Limits limits(const Endpoint& endpoint, weft::Limits limits) override {
    if (endpoint.is_up() && strikes()) edit_(limits);
    return limits;
  }

 private:
  const Edit edit_;
};
[[nodiscard]] auto states(StatesOther::Edit edit) {
  return [edit] { return std::make_unique<StatesOther>(edit); };
}

// OPS-9: one past the limit is "`too_big` at post with no effect".
class TooBigEndsTheEndpoint final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const PostResult result = Behaviour::post(endpoint, requests, count);
    if (result.status != Status::too_big) return result;
    const std::lock_guard lock(mutex_);
    if (failed_.insert(endpoint.id()).second && strikes())
      endpoint.failed(Status::aborted, 0, 0, "a request was too big");
    return result;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint32_t> failed_;
};

// OPS-9: "at the limit works": here the stated depth, with nothing unsignalled among it.
class OneSendLessThanStated final : public Disguise {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    PostResult result;
    for (; result.accepted < count; ++result.accepted) {
      if (is_full(endpoint) && strikes()) return {Status::again, result.accepted};
      result.status = Disguise::post(endpoint, requests + result.accepted, 1).status;
      if (result.status != Status::ok) break;
    }
    return result;
  }

 private:
  [[nodiscard]] bool is_full(Endpoint& endpoint) {
    const std::lock_guard lock(mutex_);
    return endpoint.is_up() && under_way(endpoint).size() + 1 >= endpoint.inner().limits().send_depth;
  }
};

// OPS-9: "one past it is `too_big`": one byte more is taken, and left out.
class InlineTakesOneMore final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const PostResult result = Behaviour::post(endpoint, requests, count);
    const std::uint64_t most = endpoint.inner().limits().max_inline;
    if (count != 1 || result.status != Status::too_big || !is_inline(requests[0]) ||
        requests[0].segments.size() != 1 || length_of(requests[0]) != most + 1 || !strikes()) {
      return result;
    }
    Segment shorter = requests[0].segments[0];
    shorter.length = most;
    WorkRequest request = requests[0];
    request.segments = {&shorter, 1};
    return Behaviour::post(endpoint, &request, 1);
  }
};

// OPS-10: contexts "need not be unique": the operation is looked up by its context.
class KnowsOperationsByContext final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < count; ++i) {
        if (is_signalled(requests[i]))
          operations_[endpoint.id()][requests[i].context] = requests[i].operation;
      }
    }
    return Behaviour::post(endpoint, requests, count);
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_send_side(out[i].operation)) continue;
      const auto& known = operations_[out[i].endpoint_id];
      const auto found = known.find(out[i].context);
      if (found != known.end() && found->second != out[i].operation && strikes())
        out[i].operation = found->second;
    }
    return count;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint32_t, std::map<std::uint64_t, Operation>> operations_;
};

// OPS-11: a flush completes, with earlier writes or without.
class AnEmptyFlushIsSilent final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    PostResult result;
    if (count == 0) return Behaviour::post(endpoint, requests, count);
    const std::lock_guard lock(mutex_);
    for (; result.accepted < count; ++result.accepted) {
      WorkRequest request = requests[result.accepted];
      if (request.operation == Operation::flush) {
        if (!wrote_.contains(endpoint.id()) && strikes()) request.flags |= Flags::unsignalled;
      } else if (request.operation != Operation::send && request.operation != Operation::read) {
        wrote_.insert(endpoint.id());
      }
      result.status = Behaviour::post(endpoint, &request, 1).status;
      if (result.status != Status::ok) break;
    }
    return result;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint32_t> wrote_;
};

[[nodiscard]] bool is_flush(const WorkRequest& request) { return request.operation == Operation::flush; }

}  // namespace

void add_contract_limits(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) {
    mutant.from_contract = true;
    mutants.push_back(std::move(mutant));
  };

  // OPS-9: "one past it is `too_big`".
  add({"too-big-is-invalid", "OPS-9", S::always, "", "", [] {
         class TooBigIsInvalid final : public Behaviour {
          public:
           PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
             PostResult result = Behaviour::post(endpoint, requests, count);
             if (result.status == Status::too_big && strikes()) result.status = Status::invalid_argument;
             return result;
           }
         };
         return std::make_unique<TooBigIsInvalid>();
       }});
  // OPS-9: "Plain writes and reads have no limit below 2^40".
  add({"transfers-of-32-bits", "OPS-9", S::always, "", "", states([](weft::Limits& limits) {
         limits.max_transfer = std::min<std::uint64_t>(limits.max_transfer, 0xffffffff);
       })});
  // OPS-9: "messages and writes with immediate at least 1 MiB".
  add({"messages-of-a-mebibyte-but-one", "OPS-9", S::corner, "", "", states([](weft::Limits& limits) {
         limits.max_message = std::min<std::uint64_t>(limits.max_message, (1 << 20) - 1);
       })});
  add({"too-big-ends-the-endpoint", "OPS-9", S::always, "", "", made<TooBigEndsTheEndpoint>()});
  add({"one-send-less-than-stated", "OPS-9", S::corner, "", "", made<OneSendLessThanStated>()});
  add({"inline-takes-one-more", "OPS-9", S::corner, "", "", made<InlineTakesOneMore>()});

  // OPS-10: "returned unchanged", also when it is no pointer to anything aligned.
  add({"contexts-lose-their-lowest-bit", "OPS-10", S::corner, "", "", entry([](OnEntry& m, Completion& c) {
         if (is_send_side(c.operation) && c.context > 0xffffffff && c.context % 2 == 1 && m.strikes())
           c.context -= 1;
         return 1;
       })});
  add({"receive-contexts-of-48-bits", "OPS-10", S::corner, "", "", entry([](OnEntry& m, Completion& c) {
         constexpr std::uint64_t pointers = (std::uint64_t{1} << 48) - 1;
         if (c.operation == Operation::receive && c.context > pointers && m.strikes()) c.context &= pointers;
         return 1;
       })});
  add({"knows-operations-by-context", "OPS-10", S::corner, "", "", made<KnowsOperationsByContext>()});

  add({"an-empty-flush-is-silent", "OPS-11", S::corner, "", "", made<AnEmptyFlushIsSilent>()});
  // OPS-11: "all earlier writes and atomics of the endpoint".
  add({"a-flush-passes-large-writes", "OPS-11", S::corner, "", "",
       overtaken([](const WorkRequest& w) { return w.operation == Operation::write && length_of(w) > 32768; },
                 is_flush)});
  add({"a-flush-forgets-atomics", "OPS-11", S::corner, "", "",
       overtaken([](const WorkRequest& w) { return is_atomic(w.operation); }, is_flush)});
  add({"a-flush-now-and-then-passes-a-write",
       "OPS-11",
       S::rare,
       "",
       "",
       overtaken([](const WorkRequest& w) { return w.operation == Operation::write; }, is_flush),
       {"OPS_6"},
       4});
}

}  // namespace mutants
