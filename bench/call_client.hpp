// What calls cost, for any contender: both ends are in the client's process, the server's has nothing to do.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "role.hpp"

namespace perf {

/// Stands where the peer's half of a workload would.
class AbsentServer final : public ServerRole {
 public:
  [[nodiscard]] std::string address() const override { return "none"; }
  void accept() override {}
  void serve(std::uint64_t /*operations*/) override {}
};

[[nodiscard]] inline std::unique_ptr<ServerRole> make_absent_server() {
  return std::make_unique<AbsentServer>();
}

/// `Side` has post(), which posts one batch of the workload, and poll(room), which takes completions and
/// returns how many; the fabric is done with a request when post() returns.
template <class Side>
class CallClient final : public ClientRole {
 public:
  template <class... Arguments>
  explicit CallClient(const Workload& workload, Arguments&&... arguments)
      : workload_(workload), side_(workload, std::forward<Arguments>(arguments)...) {}

  [[nodiscard]] std::string fabric() const override { return side_.fabric(); }

  Slice run(std::uint64_t operations) override {
    Clock::duration spent{};
    for (std::uint64_t done = 0; done < operations; done += workload_.depth)
      spent += workload_.level == Level::completed ? poll_after_posts() : post_and_drain();
    return {operations, std::chrono::duration<double>(spent).count(), {}};
  }

 private:
  using Clock = RoundTripClock::Clock;

  Clock::duration post_and_drain() {
    const Clock::time_point start = Clock::now();
    for (std::uint32_t posted = 0; posted < workload_.depth; posted += workload_.batch) side_.post();
    const Clock::duration spent = Clock::now() - start;
    while (side_.poll(many) != 0) {
    }
    return spent;
  }

  Clock::duration poll_after_posts() {
    for (std::uint32_t posted = 0; posted < workload_.depth; ++posted) side_.post();
    const Clock::time_point start = Clock::now();
    for (std::uint64_t taken = 0; taken < workload_.depth;) taken += side_.poll(workload_.batch);
    return Clock::now() - start;
  }

  static constexpr std::uint32_t many = 16;

  Workload workload_;
  Side side_;
};

/// Operations handed over by one post: a poll's are posted one by one, whatever it then takes at once.
[[nodiscard]] inline std::uint32_t posted_at_once(const Workload& workload) {
  return workload.level == Level::completed ? 1 : workload.batch;
}

}  // namespace perf
