// How threads go wrong (THR), by a reader of the contract who had not seen the rules' tests.
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "mutant.hpp"

namespace mutants {
namespace {

// THR-1: "every object may be used from any thread at once".
class PostsBesidePostsAreLost final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    bool alone = false;
    {
      const std::lock_guard lock(mutex_);
      alone = posting_.insert(endpoint.id()).second;
    }
    if (!alone && count > 0 && endpoint.is_up() && strikes()) return {Status::ok, count};
    const PostResult result = Behaviour::post(endpoint, requests, count);
    std::this_thread::yield();
    if (alone) {
      const std::lock_guard lock(mutex_);
      posting_.erase(endpoint.id());
    }
    return result;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint32_t> posting_;
};

class PostsBesideAPollAreRefused final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (polling_ > 0 && count > 0 && strikes()) return {Status::invalid_argument, 0};
    return Behaviour::post(endpoint, requests, count);
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    ++polling_;
    const std::size_t count = Behaviour::poll(queue, out, room);
    --polling_;
    return count;
  }

 private:
  std::atomic<int> polling_{0};
};

class OneThreadForEachEndpoint final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    {
      const std::lock_guard lock(mutex_);
      const auto owner = owners_.try_emplace(endpoint.id(), std::this_thread::get_id()).first->second;
      if (owner != std::this_thread::get_id() && count > 0 && strikes()) return {Status::unsupported, 0};
    }
    return Behaviour::post(endpoint, requests, count);
  }

 private:
  std::mutex mutex_;
  std::map<std::uint32_t, std::thread::id> owners_;
};

class EntriesAreTornBetweenThreads final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const bool beside = polling_.fetch_add(1) > 0;
    const std::size_t count = Behaviour::poll(queue, out, room);
    std::this_thread::yield();
    if (count > 0) {
      const std::uint64_t before = bytes_.exchange(out[0].bytes);
      if ((beside || polling_ > 1) && before != out[0].bytes && strikes()) out[0].bytes = before;
    }
    --polling_;
    return count;
  }

 private:
  std::atomic<int> polling_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

class OnlyTheFirstThreadPolls final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    {
      const std::lock_guard lock(mutex_);
      const auto owner = owners_.try_emplace(&queue, std::this_thread::get_id()).first->second;
      if (owner != std::this_thread::get_id() && strikes()) return 0;
    }
    return Behaviour::poll(queue, out, room);
  }
  void gone(Queue& queue) override {
    const std::lock_guard lock(mutex_);
    owners_.erase(&queue);
  }

 private:
  std::mutex mutex_;
  std::map<Queue*, std::thread::id> owners_;
};

// What goes wrong in mode `single` only.
class InModeSingle : public Behaviour {
 public:
  void open(provider::Context& /*inner*/, const provider::OpenRequest& request) override {
    is_single_ = request.thread_mode == weft::ThreadMode::single;
  }

 protected:
  [[nodiscard]] bool is_single() const noexcept { return is_single_; }

 private:
  bool is_single_ = false;
};

// THR-2: "one application thread at a time": another one may follow.
class SingleMeansTheFirstThread final : public InModeSingle {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (owner_ == std::thread::id{}) owner_ = std::this_thread::get_id();
    if (is_single() && owner_ != std::this_thread::get_id() && count > 0 && strikes())
      return {Status::unsupported, 0};
    return Behaviour::post(endpoint, requests, count);
  }

 private:
  std::thread::id owner_;
};

// THR-2: "the helper thread still serves it when it stays away", however long.
class TheHelperTires final : public InModeSingle {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    last_call_ = Clock::now();
    return Behaviour::post(endpoint, requests, count);
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    last_call_ = Clock::now();
    return Behaviour::poll(queue, out, room);
  }
  Clock::time_point service(provider::Context& inner, Clock::time_point now) override {
    const auto away = now - last_call_.load();
    if (is_single() && away > std::chrono::milliseconds(300) && strikes())
      return now + std::chrono::milliseconds(50);
    return Behaviour::service(inner, now);
  }

 private:
  std::atomic<Clock::time_point> last_call_{Clock::now()};
};

}  // namespace

void add_contract_threads(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) {
    mutant.from_contract = true;
    mutants.push_back(std::move(mutant));
  };

  add({"posts-beside-posts-are-lost", "THR-1", S::corner, "", "", made<PostsBesidePostsAreLost>()});
  add({"posts-beside-a-poll-are-refused", "THR-1", S::corner, "", "", made<PostsBesideAPollAreRefused>()});
  add({"one-thread-for-each-endpoint", "THR-1", S::always, "", "", made<OneThreadForEachEndpoint>()});
  add({"entries-are-torn-between-threads", "THR-1", S::corner, "", "", made<EntriesAreTornBetweenThreads>()});
  add({"only-the-first-thread-polls", "THR-1", S::always, "", "", made<OnlyTheFirstThreadPolls>()});

  add({"single-means-the-first-thread", "THR-2", S::corner, "", "", made<SingleMeansTheFirstThread>()});
  add({"the-helper-tires", "THR-2", S::corner, "", "", made<TheHelperTires>()});
}

}  // namespace mutants
