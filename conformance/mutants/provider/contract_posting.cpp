// How posting and batches go wrong (OPS-1, OPS-2), by a reader of the contract who had not seen the rules'
// tests.
#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "disguise.hpp"
#include "mutant.hpp"

namespace mutants {
namespace {

[[nodiscard]] bool is_permanent(Status status) {
  return status == Status::invalid_argument || status == Status::too_big || status == Status::unsupported;
}

// OPS-1: "`again` is never used for the latter", errors that can never become ok.
class FullComesBeforeWrong final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    PostResult result = Behaviour::post(endpoint, requests, count);
    const std::lock_guard lock(mutex_);
    if (is_permanent(result.status) && result.accepted == 0 && full_.contains(endpoint.id()) && strikes())
      result.status = Status::again;
    if (result.status == Status::ok) full_.erase(endpoint.id());
    if (result.status == Status::again && endpoint.is_up()) full_.insert(endpoint.id());
    return result;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint32_t> full_;
};

class FullReceivesComeBeforeWrong final : public Behaviour {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    PostResult result = Behaviour::post_receives(endpoint, requests, count);
    const std::lock_guard lock(mutex_);
    if (is_permanent(result.status) && result.accepted == 0 && full_.contains(endpoint.id()) && strikes())
      result.status = Status::again;
    if (result.status == Status::ok) full_.erase(endpoint.id());
    if (result.status == Status::again) full_.insert(endpoint.id());
    return result;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint32_t> full_;
};

// OPS-1: what "can never become `ok`" is not answered by `again`: here what another object would offer.
class WhatItDoesNotOfferComesLater final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    PostResult result = Behaviour::post(endpoint, requests, count);
    if (result.status == Status::unsupported && strikes()) result.status = Status::again;
    return result;
  }
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    PostResult result = Behaviour::post_receives(endpoint, requests, count);
    if (result.status == Status::unsupported && strikes()) result.status = Status::again;
    return result;
  }
};

// OPS-1: "Posting answers at once".
class WaitsForRoom final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const PostResult result = Behaviour::post(endpoint, requests, count);
    if (result.status != Status::again || !endpoint.is_up()) return result;
    {
      const std::lock_guard lock(mutex_);
      if (!waited_.insert(endpoint.id()).second || !strikes()) return result;
    }
    std::this_thread::sleep_for(std::chrono::seconds(2));
    return result;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint32_t> waited_;
};

// OPS-1: "for ever after the endpoint has ended, `not_connected`".
class GivesInAtTheFifthPost final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const PostResult result = Behaviour::post(endpoint, requests, count);
    if (result.status != Status::not_connected) return result;
    const std::lock_guard lock(mutex_);
    if (++refused_[endpoint.id()] < 5 || !strikes()) return result;
    return {Status::ok, count};
  }

 private:
  std::mutex mutex_;
  std::map<std::uint32_t, int> refused_;
};

class EndedReceivesComeLater final : public Behaviour {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    PostResult result = Behaviour::post_receives(endpoint, requests, count);
    if (result.status == Status::not_connected && strikes()) result.status = Status::again;
    return result;
  }
};

// OPS-2: requests are taken "in order".
class ReceiveBatchesBackwards final : public Behaviour {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    if (count < 2 || !strikes()) return Behaviour::post_receives(endpoint, requests, count);
    std::vector<ReceiveRequest> backwards(requests, requests + count);
    std::reverse(backwards.begin(), backwards.end());
    return Behaviour::post_receives(endpoint, backwards.data(), count);
  }
};

// OPS-2: "the rest are untouched".
class ReceivesGoOnAfterARefusal final : public Behaviour {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    const PostResult result = Behaviour::post_receives(endpoint, requests, count);
    if (!is_permanent(result.status) || result.accepted + 1 >= count || !strikes()) return result;
    const std::size_t next = result.accepted + 1;
    (void)Behaviour::post_receives(endpoint, requests + next, count - next);
    return result;
  }
};

// OPS-2: "the answer tells how many were taken".
class TellsOfNoneAfterARefusal final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    PostResult result = Behaviour::post(endpoint, requests, count);
    if (result.accepted > 0 && is_permanent(result.status) && strikes()) result.accepted = 0;
    return result;
  }
};

// OPS-2: "one system call on tcp when the batch fits the socket's buffer".
class OneCallForEach final : public Behaviour {
 public:
  explicit OneCallForEach(std::size_t at_once) : at_once_(at_once) {}
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count <= at_once_ || !strikes()) return Behaviour::post(endpoint, requests, count);
    PostResult result;
    while (result.accepted < count && result.status == Status::ok) {
      const std::size_t some = std::min(at_once_, count - result.accepted);
      const PostResult part = Behaviour::post(endpoint, requests + result.accepted, some);
      result.accepted += part.accepted;
      result.status = part.status;
    }
    return result;
  }

 private:
  const std::size_t at_once_;
};

// OPS-2: requests are taken "in order".
class WritesOfABatchGoFirst final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const auto is_write = [](const WorkRequest& request) { return request.operation == Operation::write; };
    std::vector<WorkRequest> sorted(requests, requests + count);
    if (std::is_partitioned(sorted.begin(), sorted.end(), is_write) || !strikes())
      return Behaviour::post(endpoint, requests, count);
    std::stable_partition(sorted.begin(), sorted.end(), is_write);
    return Behaviour::post(endpoint, sorted.data(), count);
  }
};

// OPS-2: of an empty batch all were taken, and none of it can be wrong.
class AnEmptyBatchIsInvalid final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count == 0 && strikes()) return {Status::invalid_argument, 0};
    return Behaviour::post(endpoint, requests, count);
  }
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    if (count == 0 && strikes()) return {Status::invalid_argument, 0};
    return Behaviour::post_receives(endpoint, requests, count);
  }
};

// OPS-2: "the answer tells how many were taken".
class TheLastOfABatchIsNotTold final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const PostResult result = Behaviour::post(endpoint, requests, count);
    if (count < 2 || result.status != Status::ok || !strikes()) return result;
    return {Status::again, count - 1};
  }
};

class TakesAllOfASharedBatch final : public Behaviour {
 public:
  PostResult post_shared(Receives& receives, const ReceiveRequest* requests, std::size_t count) override {
    const PostResult result = Behaviour::post_shared(receives, requests, count);
    if (result.status != Status::again || result.accepted == 0 || !strikes()) return result;
    return {Status::ok, count};
  }
};

}  // namespace

void add_contract_posting(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) {
    mutant.from_contract = true;
    mutants.push_back(std::move(mutant));
  };
  // OPS-1: `again` says that "nothing was taken".
  add({"takes-what-it-answers-again",
       "OPS-1",
       S::rare,
       "",
       "",
       on_post([](OnPost& m, Endpoint& e, const WorkRequest& w) -> std::optional<Status> {
         if (!e.is_up() || !m.strikes()) return std::nullopt;
         const Status status = e.inner().post(&w, 1).status;
         return status == Status::ok ? Status::again : status;
       }),
       {"OPS_6", "OPS_8", "MEM_2", "ERR_2"},
       8});
  add({"full-comes-before-wrong", "OPS-1", S::corner, "", "", made<FullComesBeforeWrong>()});
  add({"full-receives-come-before-wrong", "OPS-1", S::corner, "", "", made<FullReceivesComeBeforeWrong>()});
  add({"what-it-does-not-offer-comes-later", "OPS-1", S::always, "", "",
       made<WhatItDoesNotOfferComesLater>()});
  add({"waits-for-room", "OPS-1", S::corner, "", "", made<WaitsForRoom>()});
  add({"gives-in-at-the-fifth-post", "OPS-1", S::corner, "", "", made<GivesInAtTheFifthPost>()});
  add({"ended-receives-come-later", "OPS-1", S::always, "", "", made<EndedReceivesComeLater>(), {"ERR_2"}});

  add({"receive-batches-backwards", "OPS-2", S::always, "", "", made<ReceiveBatchesBackwards>()});
  add({"receives-go-on-after-a-refusal", "OPS-2", S::always, "", "", made<ReceivesGoOnAfterARefusal>()});
  add({"tells-of-none-after-a-refusal", "OPS-2", S::always, "", "", made<TellsOfNoneAfterARefusal>()});
  add({"one-call-for-each", "OPS-2", S::always, "", "", [] { return std::make_unique<OneCallForEach>(1); }});
  add({"a-call-for-every-sixteen", "OPS-2", S::corner, "", "",
       [] { return std::make_unique<OneCallForEach>(16); }});
  add({"writes-of-a-batch-go-first", "OPS-2", S::corner, "", "", made<WritesOfABatchGoFirst>()});
  add({"an-empty-batch-is-invalid", "OPS-2", S::corner, "", "", made<AnEmptyBatchIsInvalid>()});
  add({"the-last-of-a-batch-is-not-told", "OPS-2", S::rare, "", "", made<TheLastOfABatchIsNotTold>(), {}, 4});
  add({"takes-all-of-a-shared-batch", "OPS-2", S::corner, "", "", made<TakesAllOfASharedBatch>()});
}

}  // namespace mutants
