// Mutants of the rules PRG, THR, RCQ and CON.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "mutant.hpp"

namespace mutants {
namespace {

using namespace std::chrono_literals;

class PollsSlowly final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    if (count == 0 && strikes()) std::this_thread::sleep_for(150ms);
    return count;
  }
};

// Writes an entry behind the caller's array.
class WritesTooFar final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    if (count == room && room > 0 && room < 4 && strikes()) out[room] = out[room - 1];
    return count;
  }
};

class LosesWhatFindsNoRoom final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    Completion lost;
    if (room == 0 && queue.inner().poll(&lost, 1) != 0) (void)strikes();
    return Behaviour::poll(queue, out, room);
  }
};

// Nothing moves while the program stays away.
class SleepsWithTheProgram final : public Behaviour {
 public:
  Clock::time_point service(provider::Context& /*inner*/, Clock::time_point /*now*/) override {
    (void)strikes();
    return Clock::time_point::max();
  }
};

class WakesLate final : public Behaviour {
 public:
  void readable(Queue& queue) override {
    const std::lock_guard lock(mutex_);
    if (late_.try_emplace(&queue, Clock::now() + 700ms).second) (void)strikes();
  }
  int descriptor(Queue& /*queue*/) override { return -1; }
  Clock::time_point service(provider::Context& inner, Clock::time_point now) override {
    {
      const std::lock_guard lock(mutex_);
      for (auto at = late_.begin(); at != late_.end();) {
        if (now < at->second) {
          ++at;
          continue;
        }
        at->first->forward_readable();
        at = late_.erase(at);
      }
    }
    return std::min(Behaviour::service(inner, now), now + 20ms);
  }
  void gone(Queue& queue) override {
    const std::lock_guard lock(mutex_);
    late_.erase(&queue);
  }

 private:
  std::mutex mutex_;
  std::map<Queue*, Clock::time_point> late_;
};

class ArmsWhatIsThere final : public Behaviour {
 public:
  bool arm(Queue& queue) override { return Behaviour::arm(queue) || strikes(); }
};

class NeverRests final : public Behaviour {
 public:
  bool arm(Queue& queue) override {
    const bool armed = Behaviour::arm(queue);
    if (armed && strikes()) queue.forward_readable();
    return armed;
  }
};

// What is posted leaves when the program calls next.
class PostsWithTheNextPoll final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count != 1 || requests[0].operation != Operation::send || requests[0].segments.size() != 1 ||
        !strikes())
      return Behaviour::post(endpoint, requests, count);
    const std::lock_guard lock(mutex_);
    held_.push_back({&endpoint, requests[0], requests[0].segments[0]});
    return {Status::ok, 1};
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    {
      const std::lock_guard lock(mutex_);
      for (Held& held : held_) {
        held.request.segments = {&held.segment, 1};
        (void)held.endpoint->inner().post(&held.request, 1);
      }
      held_.clear();
    }
    return Behaviour::poll(queue, out, room);
  }
  void destroyed(Endpoint& endpoint) override {
    const std::lock_guard lock(mutex_);
    std::erase_if(held_, [&](const Held& held) { return held.endpoint == &endpoint; });
  }

 private:
  struct Held {
    Endpoint* endpoint;
    WorkRequest request;
    Segment segment;
  };
  std::mutex mutex_;
  std::vector<Held> held_;
};

// A helper thread although none was wanted.
class HelpsUnasked final : public Behaviour {
 public:
  void open(provider::Context& /*inner*/, const provider::OpenRequest& request) override {
    if (request.progress_mode != weft::ProgressMode::when_called) return;
    (void)strikes();
    helper_ = std::thread([this] {
      while (!stop_) std::this_thread::sleep_for(5ms);
    });
  }
  ~HelpsUnasked() override {
    stop_ = true;
    if (helper_.joinable()) helper_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread helper_;
};

class OneReceiveLessWhenShared final : public Behaviour {
 public:
  PostResult post_shared(Receives& receives, const ReceiveRequest* requests, std::size_t count) override {
    if (posted_ + count >= receives.depth() && strikes()) return {Status::again, 0};
    const PostResult result = Behaviour::post_shared(receives, requests, count);
    posted_ += result.accepted;
    return result;
  }

 private:
  std::atomic<std::uint64_t> posted_{0};
};

class DiesWithItsFirstEndpoint final : public Behaviour {
 public:
  void end(Endpoint& endpoint, const provider::EndOrder& order) override {
    if (endpoint.shares_receives()) one_ended_ = true;
    Behaviour::end(endpoint, order);
  }
  PostResult post_shared(Receives& receives, const ReceiveRequest* requests, std::size_t count) override {
    if (one_ended_ && strikes()) return {Status::not_connected, 0};
    return Behaviour::post_shared(receives, requests, count);
  }

 private:
  std::atomic<bool> one_ended_{false};
};

class MarksOneTooLow final : public Behaviour {
 public:
  void set_low_water(Receives& receives, std::uint32_t mark) override {
    Behaviour::set_low_water(receives, mark > 0 && strikes() ? mark - 1 : mark);
  }
};

class MarksNothing final : public Behaviour {
 public:
  void set_low_water(Receives& /*receives*/, std::uint32_t /*mark*/) override { (void)strikes(); }
};

class NoReceivesBeforeItIsUp final : public Behaviour {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    if (!endpoint.is_up() && strikes()) return {Status::again, 0};
    return Behaviour::post_receives(endpoint, requests, count);
  }
};

class ManyAreTooMany final : public Behaviour {
 public:
  void prepared(const provider::EndpointRequest& /*request*/) override {
    constexpr int most = 40;
    if (++alive_ <= most || !strikes()) return;
    --alive_;
    throw weft::Error(Status::resource_limit, "there are enough endpoints");
  }
  void destroyed(Endpoint& /*endpoint*/) override { --alive_; }

 private:
  std::atomic<int> alive_{0};
};

class ConnectsSlowly final : public Behaviour {
 public:
  void prepared(const provider::EndpointRequest& /*request*/) override {
    if (strikes()) std::this_thread::sleep_for(400ms);
  }
};

class LeavesADescriptor final : public Behaviour {
 public:
  void destroyed(Endpoint& endpoint) override {
    if (!endpoint.is_up() && strikes()) (void)!::dup(0);
  }
};

class KeepsItsOwnLimits final : public Behaviour {
 public:
  weft::Limits limits(const Endpoint& endpoint, weft::Limits limits) override {
    if (endpoint.is_up() && strikes()) limits.max_message = std::uint64_t{1} << 40;
    if (!endpoint.is_up()) own_ = limits;
    if (endpoint.is_up()) limits.send_depth = own_.send_depth;
    if (endpoint.is_up()) limits.receive_depth = own_.receive_depth;
    return limits;
  }

 private:
  weft::Limits own_;
};

}  // namespace

void add_progress_and_the_rest(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) { mutants.push_back(std::move(mutant)); };
  add({"polls-slowly", "PRG-1", S::rare, "polling_never_blocks", "", made<PollsSlowly>(), {}, 300});
  add({"writes-behind-the-array", "PRG-1", S::corner, "polling_takes_no_more", "", made<WritesTooFar>()});
  add({"loses-what-finds-no-room", "PRG-1", S::corner, "polling_takes_no_more", "",
       made<LosesWhatFindsNoRoom>()});
  add({"sleeps-with-the-program",
       "PRG-2",
       S::always,
       "",
       "",
       made<SleepsWithTheProgram>(),
       {"OPS_8", "OPS_6", "ERR_2", "RCQ_1"}});
  add({"wakes-late", "PRG-3", S::always, "wait_wakes", "", made<WakesLate>(), {"ERR_2", "MEM_5"}});
  add({"arms-what-is-there", "PRG-4", S::always, "a_completion_that_is_there", "", made<ArmsWhatIsThere>()});
  add({"never-rests", "PRG-4", S::always, "drained_and_armed", "", made<NeverRests>()});
  add({"posts-with-the-next-poll",
       "PRG-5",
       S::always,
       "",
       "",
       made<PostsWithTheNextPoll>(),
       {"MEM_2", "ERR_2"}});
  add({"helps-unasked", "PRG-6", S::corner, "without_a_helper", "", made<HelpsUnasked>()});
  add({"two-threads-get-one-completion",
       "THR-1",
       S::rare,
       "each_completion",
       "",
       entry([](OnEntry& m, Completion& c) {
         return c.operation <= Operation::receive && m.strikes() ? 2 : 1;
       }),
       {},
       1000});
  add({"a-completion-for-no-thread",
       "THR-1",
       S::rare,
       "each_completion",
       "",
       entry([](OnEntry& m, Completion& c) {
         return c.operation == Operation::receive && m.strikes() ? 0 : 1;
       }),
       {},
       1000});
  add({"one-receive-less-when-shared",
       "RCQ-1",
       S::corner,
       "its_limits",
       "",
       made<OneReceiveLessWhenShared>(),
       {"RCQ_1"}});
  add({"dies-with-its-first-endpoint", "RCQ-1", S::corner, "it_survives", "",
       made<DiesWithItsFirstEndpoint>()});
  add({"marks-one-too-low", "RCQ-2", S::corner, "low_water", "", made<MarksOneTooLow>()});
  add({"marks-nothing", "RCQ-2", S::always, "low_water", "", made<MarksNothing>()});
  add({"marks-twice", "RCQ-2", S::always, "low_water", "", entry([](OnEntry& m, Completion& c) {
         return c.operation == Operation::low_water && m.strikes() ? 2 : 1;
       })});
  add({"connects-slowly", "CON-2", S::always, "connecting_never_blocks", "", made<ConnectsSlowly>()});
  add({"leaves-a-descriptor", "CON-3", S::corner, "", "", made<LeavesADescriptor>()});
  add({"no-receives-before-it-is-up", "CON-5", S::always, "before_it_is_up", "again",
       made<NoReceivesBeforeItIsUp>()});
  add({"not-up-is-not-connected", "CON-5", S::always, "before_it_is_up", "not_connected",
       answer([](OnAnswer& m, Endpoint& e, const WorkRequest&, PostResult& r) {
         if (r.status == Status::again && !e.is_up() && m.strikes()) r.status = Status::not_connected;
       })});
  add({"many-are-too-many", "CON-6", S::corner, "", "", made<ManyAreTooMany>()});
  add({"keeps-its-own-limits", "CON-8", S::always, "", "", made<KeepsItsOwnLimits>()});
}

}  // namespace mutants
