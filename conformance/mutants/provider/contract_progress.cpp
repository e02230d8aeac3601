// Mutants of PRG, written from the contract's words before its tests were seen.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <deque>
#include <set>
#include <thread>

#include "contract.hpp"

namespace mutants {
namespace {

using namespace std::chrono_literals;

// PRG-1: "No endpoint starves another." Here the first of a queue goes before all others, while it lasts.
class TheFirstStarvesTheOthers final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    Waiting& waiting = waiting_[&queue];
    bool first_is_there = false;
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].operation != Operation::receive) continue;
      if (waiting.first == 0) waiting.first = out[i].endpoint_id;
      if (out[i].endpoint_id == waiting.first) waiting.seen = Clock::now();
    }
    first_is_there = Clock::now() - waiting.seen < 1s;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (first_is_there && out[i].endpoint_id != waiting.first && strikes()) {
        waiting.entries.push_back(out[i]);
      } else if (!waiting.entries.empty()) {
        waiting.entries.push_back(out[i]);
      } else {
        out[kept++] = out[i];
      }
    }
    while (!first_is_there && kept < room && !waiting.entries.empty()) {
      out[kept++] = waiting.entries.front();
      waiting.entries.pop_front();
    }
    return kept;
  }
  bool arm(Queue& queue) override {
    {
      const std::lock_guard lock(mutex_);
      if (!waiting_[&queue].entries.empty()) return false;
    }
    return Behaviour::arm(queue);
  }
  void gone(Queue& queue) override {
    const std::lock_guard lock(mutex_);
    waiting_.erase(&queue);
  }

 private:
  struct Waiting {
    std::uint32_t first = 0;
    Clock::time_point seen{};
    std::deque<Completion> entries;
  };
  std::mutex mutex_;
  std::map<Queue*, Waiting> waiting_;
};

// PRG-2: "(within 100 ms of what the fabric needs)".
class ServesTheAbsentLate final : public Behaviour {
 public:
  Clock::time_point service(provider::Context& inner, Clock::time_point now) override {
    if (now < next_) {
      std::this_thread::sleep_for(1ms);  // the fabric's descriptor goes on calling
      return now + 10ms;
    }
    (void)strikes();
    next_ = now + 700ms;
    return std::min(Behaviour::service(inner, now), next_);
  }

 private:
  Clock::time_point next_{};
};

// PRG-2: "although the target makes no library call at all", however long it stays away.
class GivesUpTheAbsent final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    served_ = 0;
    return Behaviour::poll(queue, out, room);
  }
  Clock::time_point service(provider::Context& inner, Clock::time_point now) override {
    if (++served_ < 60 || !strikes()) return Behaviour::service(inner, now);
    return Clock::time_point::max();
  }

 private:
  std::atomic<int> served_{0};
};

// PRG-4: "if one is already there, arm() refuses."
class ArmsWhatIsThereNowAndThen final : public Behaviour {
 public:
  bool arm(Queue& queue) override { return Behaviour::arm(queue) || strikes(); }
};

// PRG-4: "Drained and armed, it is quiet".
class IsReadableForNothingNowAndThen final : public Behaviour {
 public:
  bool arm(Queue& queue) override {
    const bool armed = Behaviour::arm(queue);
    if (armed && strikes()) queue.forward_readable();
    return armed;
  }
};

// PRG-4: "Drained and armed, it […] costs no CPU."
class BurnsWhileArmed final : public Behaviour {
 public:
  ~BurnsWhileArmed() override {
    stop_ = true;
    if (burner_.joinable()) burner_.join();
  }
  bool arm(Queue& queue) override {
    const bool armed = Behaviour::arm(queue);
    armed_ = armed;
    const std::lock_guard lock(mutex_);
    if (armed && !burner_.joinable() && strikes()) start();
    return armed;
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    armed_ = false;
    return Behaviour::poll(queue, out, room);
  }

 private:
  void start() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    burner_ = std::thread([this] {
      while (!stop_) {
        // Three tenths of a processor.
        const auto until = Clock::now() + 3ms;
        while (armed_ && Clock::now() < until) {
        }
        std::this_thread::sleep_for(7ms);
      }
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  std::atomic<bool> stop_{false};
  std::atomic<bool> armed_{false};
  std::mutex mutex_;
  std::thread burner_;
};

// PRG-5: "An accepted operation starts and finishes although its initiator makes no further call. What the
// library holds back […] leaves within 100 ms, at once when the endpoint was idle."
class HoldsBack final : public KnowsRegions {
 public:
  enum class Which : std::uint8_t { first_of_idle, any, last_of_batch };
  // With a time of zero: until the program's next call.
  HoldsBack(Which which, Clock::duration time) : which_(which), time_(time) {}

  void open(provider::Context& /*inner*/, const provider::OpenRequest& request) override {
    events_ = request.events;
  }
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const std::lock_guard lock(mutex_);
    Held& held = held_[&endpoint];
    if (time_ == Clock::duration::zero()) release(endpoint, held);
    const bool idle = Clock::now() - std::exchange(held.posted, Clock::now()) > 50ms;
    std::size_t number = 0;
    return one_by_one(endpoint, requests, count, [&](const WorkRequest& request) -> std::optional<Status> {
      ++number;
      const bool wanted = which_ == Which::any || (which_ == Which::first_of_idle && idle && number == 1) ||
                          (which_ == Which::last_of_batch && count > 1 && number == count);
      const bool starts = wanted && held.requests.empty() && endpoint.is_up() && can_wait(endpoint, request);
      if (held.requests.empty() && (!starts || !strikes())) return std::nullopt;
      if (!can_wait(endpoint, request) || held.requests.size() > 32) {
        release(endpoint, held);
        return std::nullopt;
      }
      if (held.requests.empty()) held.due = Clock::now() + time_;
      held.requests.push_back({request, {request.segments.begin(), request.segments.end()}});
      if (events_ != nullptr) events_->request_service();
      return Status::ok;
    });
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    release_due(Clock::now(), time_ == Clock::duration::zero());
    return Behaviour::poll(queue, out, room);
  }
  Clock::time_point service(provider::Context& inner, Clock::time_point now) override {
    release_due(now, false);
    return std::min(Behaviour::service(inner, now), now + 10ms);
  }
  void drain(Endpoint& endpoint) override {
    release_of(endpoint);
    Behaviour::drain(endpoint);
  }
  void end(Endpoint& endpoint, const provider::EndOrder& order) override {
    release_of(endpoint);
    Behaviour::end(endpoint, order);
  }
  void destroyed(Endpoint& endpoint) override {
    const std::lock_guard lock(mutex_);
    held_.erase(&endpoint);
  }

 private:
  struct Copy {
    WorkRequest request;
    std::vector<Segment> segments;
  };
  struct Held {
    Clock::time_point posted{};
    Clock::time_point due{};
    std::deque<Copy> requests;
  };

  // Only what can surely be posted later as well.
  bool can_wait(Endpoint& endpoint, const WorkRequest& request) {
    return request.operation == Operation::send && request.flags == Flags::none &&
           request.segments.size() == 1 && place(request.segments[0]) != nullptr &&
           request.segments[0].length > 0 && request.segments[0].length <= endpoint.limits().max_message;
  }
  void release(Endpoint& endpoint, Held& held) {
    while (!held.requests.empty()) {
      Copy& copy = held.requests.front();
      copy.request.segments = copy.segments;
      const Status status = endpoint.inner().post(&copy.request, 1).status;
      if (status == Status::again) return;
      if (status != Status::ok) (void)pretend(endpoint, copy.request, Status::cancelled);
      held.requests.pop_front();
    }
  }
  void release_of(Endpoint& endpoint) {
    const std::lock_guard lock(mutex_);
    const auto found = held_.find(&endpoint);
    if (found != held_.end()) release(endpoint, found->second);
  }
  void release_due(Clock::time_point now, bool all) {
    const std::lock_guard lock(mutex_);
    for (auto& [endpoint, held] : held_) {
      if (all || (time_ != Clock::duration::zero() && held.due <= now)) release(*endpoint, held);
    }
  }

  const Which which_;
  const Clock::duration time_;
  provider::ContextEvents* events_ = nullptr;
  std::mutex mutex_;
  std::map<Endpoint*, Held> held_;
};

// PRG-6: "A context opened with `progress = when_called` has no helper thread".
class KeepsAnIdleThread final : public Behaviour {
 public:
  void open(provider::Context& /*inner*/, const provider::OpenRequest& request) override {
    if (request.progress_mode != weft::ProgressMode::when_called || !strikes()) return;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    idle_ = std::thread([this] {
      while (!stop_) std::this_thread::sleep_for(20ms);
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~KeepsAnIdleThread() override {
    stop_ = true;
    if (idle_.joinable()) idle_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread idle_;
};

// PRG-6: "advance only inside calls, wait included": any call, not only a poll of the endpoint's own queue.
class WhenCalledMeansWhenPolled final : public Behaviour {
 public:
  void open(provider::Context& /*inner*/, const provider::OpenRequest& request) override {
    when_called_ = request.progress_mode == weft::ProgressMode::when_called;
  }
  Clock::time_point service(provider::Context& inner, Clock::time_point now) override {
    if (!when_called_ || !strikes()) return Behaviour::service(inner, now);
    return Clock::time_point::max();
  }

 private:
  bool when_called_ = false;
};

}  // namespace

void add_contract_progress(std::vector<Mutant>& mutants) {
  using S = Strength;
  using Which = HoldsBack::Which;
  const auto add = [&](Mutant mutant) { add_blindly(mutants, std::move(mutant)); };
  const auto holds_back = [](Which which, Clock::duration time) {
    return [which, time] { return std::make_unique<HoldsBack>(which, time); };
  };
  add({"the-first-starves-the-others", "PRG-1", S::corner, "", "", made<TheFirstStarvesTheOthers>()});
  add({"serves-the-absent-late", "PRG-2", S::always, "", "", made<ServesTheAbsentLate>()});
  add({"gives-up-the-absent", "PRG-2", S::corner, "", "", made<GivesUpTheAbsent>()});
  add({"arms-what-is-there-now-and-then",
       "PRG-4",
       S::rare,
       "",
       "",
       made<ArmsWhatIsThereNowAndThen>(),
       {},
       4});
  add({"is-readable-for-nothing-now-and-then",
       "PRG-4",
       S::rare,
       "",
       "",
       made<IsReadableForNothingNowAndThen>(),
       {},
       5});
  add({"burns-while-armed", "PRG-4", S::corner, "", "", made<BurnsWhileArmed>()});
  add({"idle-endpoints-start-late", "PRG-5", S::always, "", "", holds_back(Which::first_of_idle, 90ms)});
  add({"leaves-after-a-second-now-and-then", "PRG-5", S::rare, "", "", holds_back(Which::any, 1s), {}, 20});
  add({"a-batchs-last-waits-for-a-call", "PRG-5", S::corner, "", "", holds_back(Which::last_of_batch, 0s)});
  add({"keeps-an-idle-thread", "PRG-6", S::corner, "", "", made<KeepsAnIdleThread>()});
  add({"when-called-means-when-polled", "PRG-6", S::always, "", "", made<WhenCalledMeansWhenPolled>()});
}

}  // namespace mutants
