// The loop that moves everything the program does not move itself: handshakes, links, deadlines, and the
// provider's own progress. A helper thread runs it, or with `when_called` the program's calls do (PRG-6).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "bootstrap/context_bell.hpp"
#include "bootstrap/descriptor.hpp"
#include "bootstrap/timers.hpp"
#include "weft/provider/context.hpp"

namespace weft::core {

class Service {
 public:
  using Clock = Timers::Clock;
  using Time = Timers::Time;

  // Something with a descriptor. Called with the mutex held.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void on_ready(std::uint32_t events) = 0;
    // on_ready threw: give this one object up.
    virtual void on_fault(std::string_view what) noexcept = 0;
  };
  using Watch = std::uint64_t;  // 0: none

  // `after_events` runs with the mutex held in every round, after the handlers.
  Service(provider::Context& provider, std::shared_ptr<ContextBell> bell, std::function<void()> after_events);
  ~Service();

  // Guards all of the bootstrap's state. The provider is called with it held; what the provider calls back
  // never takes it.
  [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }

  // ---- with the mutex held
  [[nodiscard]] Watch watch(int descriptor, std::uint32_t events, std::shared_ptr<Handler> handler);
  void change(Watch watch, std::uint32_t events);
  void unwatch(Watch& watch) noexcept;  // before the descriptor is closed
  Timers::Id add_timer(std::chrono::nanoseconds from_now, std::function<void()> action);
  void cancel_timer(Timers::Id& id) noexcept { timers_.cancel(id); }
  // Lets those look who wait in wait_until.
  void notify() noexcept { changed_.notify_all(); }
  // Blocks until `done` holds or the time has come; `lock` is that of mutex(). False: the time has come.
  bool wait_until(std::unique_lock<std::mutex>& lock, Time deadline, const std::function<bool()>& done);

  // ---- without it
  void start();
  // Ends the helper thread. The program's calls run the loop from then on.
  void stop();
  // One round: waits at most `at_most`, serves what is there.
  void step(std::chrono::nanoseconds at_most);
  // One round without waiting, unless another thread is in one or one was just done. For `when_called`.
  void assist() noexcept;
  [[nodiscard]] bool has_helper() const noexcept { return has_helper_; }
  // For `when_called`: readable when step() has something to do, and the time at which it will have.
  [[nodiscard]] int descriptor() const noexcept { return epoll_.get(); }
  [[nodiscard]] Time next_time();

 private:
  struct Entry {
    int descriptor = -1;
    std::shared_ptr<Handler> handler;
  };

  void run() noexcept;
  void round(std::chrono::nanoseconds at_most);
  void dispatch(Watch watch, std::uint32_t events) noexcept;
  void run_timers(Time now) noexcept;
  void serve_provider(Time now);
  void arm_provider() noexcept;
  [[nodiscard]] int sleep_time(Time now, std::chrono::nanoseconds at_most);

  provider::Context& provider_;
  const std::shared_ptr<ContextBell> bell_;
  Waker& waker_;
  const std::function<void()> after_events_;
  Descriptor epoll_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Timers timers_;
  std::unordered_map<Watch, Entry> entries_;
  Watch last_watch_;
  Time sleeps_until_ = Time::min();  // what the sleeping round knows of

  std::mutex step_mutex_;  // one round at a time; taken before mutex_
  Time provider_time_ = Time::min();
  int provider_descriptor_ = -1;
  bool provider_ready_ = false;
  bool provider_armed_ = false;
  std::atomic<Time::rep> last_assist_{0};

  std::atomic<bool> stopping_{false};
  std::atomic<bool> has_helper_{false};
  std::thread helper_;
};

}  // namespace weft::core
