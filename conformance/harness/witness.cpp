#include "harness/witness.hpp"

#include <pthread.h>
#include <sched.h>

namespace conformance {
namespace {

constexpr Duration tick = 1ms;

}  // namespace

Witness::Witness() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &here);
  pthread_setaffinity_np(pthread_self(), sizeof here, &here);  // which threads made from now on inherit
  thread_ = std::thread([this] { watch(); });
}

Witness::~Witness() {
  over_ = true;
  thread_.join();
}

void Witness::settle() const {
  const std::uint64_t before = ticks_;
  while (ticks_ < before + 2) pause(tick);
}

void Witness::watch() {
  while (!over_) {
    const auto begin = Clock::now();
    std::this_thread::sleep_for(tick);
    const Duration late = Clock::now() - begin - tick;
    // A tick of the scheduler is no standstill.
    if (late > 5ms) stood_still_.fetch_add(late.count());
    ticks_.fetch_add(1);
  }
}

}  // namespace conformance
