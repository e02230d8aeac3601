// Mutants of the rules ERR.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "mutant.hpp"

namespace mutants {
namespace {

using namespace std::chrono_literals;

auto changes_the_end(Status from, Status to) {
  return entry([from, to](OnEntry& m, Completion& c) {
    if (c.operation == Operation::endpoint_ended && c.status == from && m.strikes()) c.status = to;
    return 1;
  });
}

// An endpoint on which nothing came for a while is given up.
class DeclaresTheQuietDead final : public Behaviour {
 public:
  void go_up(Endpoint& endpoint) override {
    const std::lock_guard lock(mutex_);
    since_[&endpoint] = Clock::now();
    Behaviour::go_up(endpoint);
  }
  Clock::time_point service(provider::Context& inner, Clock::time_point now) override {
    {
      const std::lock_guard lock(mutex_);
      for (auto& [endpoint, since] : since_) {
        if (now - since < 3s) continue;
        since = Clock::time_point::max();
        (void)strikes();
        endpoint->events().failed(Status::aborted, 0, 0, "nothing came for a while");
      }
    }
    return std::min(Behaviour::service(inner, now), now + 100ms);
  }
  void destroyed(Endpoint& endpoint) override {
    const std::lock_guard lock(mutex_);
    since_.erase(&endpoint);
  }

 private:
  std::mutex mutex_;
  std::map<Endpoint*, Clock::time_point> since_;
};

class DrainsNothing final : public Behaviour {
 public:
  void drain(Endpoint& endpoint) override {
    (void)strikes();
    endpoint.events().drained(0);
  }
};

// Waits for messages that were never sent.
class NeverDrains final : public Behaviour {
 public:
  void drain(Endpoint& /*endpoint*/) override { (void)strikes(); }
};

class EndsSlowly final : public Behaviour {
 public:
  void silence(Endpoint& endpoint) override {
    // Once in a context: that is long enough, and no test hangs.
    if (!has_slept_.exchange(true) && strikes()) std::this_thread::sleep_for(5s);
    Behaviour::silence(endpoint);
  }

 private:
  std::atomic<bool> has_slept_{false};
};

// The last report comes before what it is to follow.
class EndsTooSoon final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    for (std::size_t i = 1; i < count; ++i) {
      if (out[i].operation != Operation::endpoint_ended || out[i - 1].endpoint_id != out[i].endpoint_id)
        continue;
      if (strikes()) std::swap(out[i - 1], out[i]);
    }
    return count;
  }
};

// The end of one endpoint takes another along.
class TakesANeighbourAlong final : public Behaviour {
 public:
  void go_up(Endpoint& endpoint) override {
    {
      const std::lock_guard lock(mutex_);
      up_.push_back(&endpoint);
    }
    Behaviour::go_up(endpoint);
  }
  void end(Endpoint& endpoint, const provider::EndOrder& order) override {
    Endpoint* other = nullptr;
    {
      const std::lock_guard lock(mutex_);
      std::erase(up_, &endpoint);
      if (up_.size() > 2) {
        other = up_.front();
        up_.erase(up_.begin());
      }
    }
    Behaviour::end(endpoint, order);
    if (other != nullptr && strikes()) other->events().failed(Status::aborted, 0, 0, "its neighbour ended");
  }
  void destroyed(Endpoint& endpoint) override {
    const std::lock_guard lock(mutex_);
    std::erase(up_, &endpoint);
  }

 private:
  std::mutex mutex_;
  std::vector<Endpoint*> up_;
};

}  // namespace

void add_ends(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) { mutants.push_back(std::move(mutant)); };
  add({"truncates-silently", "ERR-1", S::always, "one_byte_more", "", entry([](OnEntry& m, Completion& c) {
         if (c.status == Status::truncated && c.operation == Operation::receive && m.strikes())
           c.status = Status::ok;
         return 1;
       })});
  add({"truncation-is-an-abort", "ERR-1", S::always, "one_byte_more", "truncated",
       changes_the_end(Status::truncated, Status::aborted)});
  add({"cancelled-are-aborted",
       "ERR-2",
       S::always,
       "abort_completes",
       "",
       entry([](OnEntry& m, Completion& c) {
         if (c.status == Status::cancelled && c.operation == Operation::receive && m.strikes())
           c.status = Status::aborted;
         return 1;
       }),
       {"ERR_2"}});
  add({"one-outstanding-is-forgotten",
       "ERR-2",
       S::corner,
       "abort_completes",
       "",
       entry([](OnEntry& m, Completion& c) {
         return c.status == Status::cancelled && c.operation == Operation::receive && m.strikes() ? 0 : 1;
       }),
       {"ERR_2"}});
  add({"takes-a-neighbour-along", "ERR-2", S::corner, "does_not_disturb", "", made<TakesANeighbourAlong>()});
  add({"declares-the-quiet-dead", "ERR-3", S::corner, "a_stopped_peer_is_not_dead_on_an_idle", "",
       made<DeclaresTheQuietDead>()});
  add({"closes-without-delivering", "ERR-4", S::always, "a_graceful_close", "", made<DrainsNothing>()});
  add({"never-closes-gracefully", "ERR-4", S::always, "a_graceful_close", "", made<NeverDrains>()});
  add({"an-abort-looks-graceful",
       "ERR-4",
       S::always,
       "an_abort_leaves",
       "aborted",
       changes_the_end(Status::aborted, Status::disconnected),
       {"ERR_2"}});
  add({"handles-go-slowly", "ERR-5", S::always, "", "", made<EndsSlowly>()});
  add({"ends-twice",
       "ERR-7",
       S::always,
       "every_end",
       "",
       entry([](OnEntry& m, Completion& c) {
         return c.operation == Operation::endpoint_ended && m.strikes() ? 2 : 1;
       }),
       {"ERR_2"}});
  add({"ends-unsaid",
       "ERR-7",
       S::always,
       "every_end",
       "",
       entry([](OnEntry& m, Completion& c) {
         return c.operation == Operation::endpoint_ended && m.strikes() ? 0 : 1;
       }),
       {"ERR_2"}});
  add({"ends-before-its-other-completions",
       "ERR-7",
       S::corner,
       "every_end",
       "",
       made<EndsTooSoon>(),
       {"ERR_2"}});
}

}  // namespace mutants
