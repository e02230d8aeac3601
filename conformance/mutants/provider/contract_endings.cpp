// Mutants of ERR-5 to ERR-7, written from the contract's words before its tests were seen.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <set>
#include <thread>

#include "contract.hpp"

namespace mutants {
namespace {

using namespace std::chrono_literals;

// ERR-5: "Destroying a region's last handle ends the endpoints still using it, then deregisters."
class ForgetsWhoUsesARegion final : public Behaviour {
 public:
  void collect_users(Region& /*region*/, std::vector<std::uint32_t>& /*endpoint_ids*/) override {
    (void)strikes();
  }
};

class SharedReceivesOutliveTheirRegion final : public Behaviour {
 public:
  void cancel_shared_receives(Region& /*region*/) override { (void)strikes(); }
};

// ERR-5: "its completions are not delivered any more."
class TellsOfTheDestroyed final : public Behaviour {
 public:
  void silence(Endpoint& endpoint) override {
    Behaviour::silence(endpoint);
    if (!endpoint.is_up() || !strikes()) return;
    WorkRequest request;
    (void)pretend(endpoint, request, Status::cancelled);
  }
};

// ERR-5: "nothing leaks". Seen by every test that counts threads, so only with some endpoints.
class LeavesAThreadBehind final : public Behaviour {
 public:
  void destroyed(Endpoint& endpoint) override {
    if (!endpoint.is_up() || ++gone_ != 40 || !strikes()) return;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([] {
      for (;;) ::pause();
    }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

 private:
  std::atomic<int> gone_{0};
};

class LeavesMemoryForEachEndpoint final : public Behaviour {
 public:
  void destroyed(Endpoint& endpoint) override {
    constexpr std::size_t size = 256 << 10;
    static std::atomic<int> left{1000};  // enough to be seen, not enough to hurt the machine
    if (!endpoint.is_up() || left.fetch_sub(1) <= 0 || !strikes()) return;
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) std::memset(memory, 1, size);
  }
};

// ERR-5: "a context with all its endpoints too (one common deadline)".
class EndpointsGoOneAfterAnother final : public Behaviour {
 public:
  void go_up(Endpoint& endpoint) override {
    ++up_;
    Behaviour::go_up(endpoint);
  }
  void end(Endpoint& endpoint, const provider::EndOrder& order) override {
    if (up_ > 6 && order.cause == Status::local_close && strikes()) std::this_thread::sleep_for(400ms);
    Behaviour::end(endpoint, order);
  }
  void destroyed(Endpoint& endpoint) override {
    if (endpoint.is_up()) --up_;
  }

 private:
  std::atomic<int> up_{0};
};

// ERR-6: "helper threads take no signals."
class ItsThreadTakesOneSignal final : public Behaviour {
 public:
  void open(provider::Context& /*inner*/, const provider::OpenRequest& /*request*/) override {
    (void)strikes();
    sigset_t most;
    sigset_t before;
    sigfillset(&most);
    sigdelset(&most, SIGHUP);
    pthread_sigmask(SIG_SETMASK, &most, &before);
    helper_ = std::thread([this] {
      while (!stop_) std::this_thread::sleep_for(5ms);
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~ItsThreadTakesOneSignal() override {
    stop_ = true;
    if (helper_.joinable()) helper_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread helper_;
};

// ERR-7: "it wakes waiters".
class AnEndWakesNobody final : public Behaviour {
 public:
  void end(Endpoint& endpoint, const provider::EndOrder& order) override {
    {
      const std::lock_guard lock(mutex_);
      if (endpoint.is_up()) silent_.insert(&endpoint.receive_queue());
    }
    Behaviour::end(endpoint, order);
  }
  void readable(Queue& queue) override {
    {
      const std::lock_guard lock(mutex_);
      if (silent_.contains(&queue) && strikes()) return;
    }
    Behaviour::readable(queue);
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    {
      const std::lock_guard lock(mutex_);
      silent_.erase(&queue);
    }
    return Behaviour::poll(queue, out, room);
  }

 private:
  std::mutex mutex_;
  std::set<Queue*> silent_;
};

// ERR-7: "Every endpoint that was up delivers exactly one `endpoint_ended`", the others none.
class WhatNeverWasUpEndsToo final : public Behaviour {
 public:
  void end(Endpoint& endpoint, const provider::EndOrder& order) override {
    Behaviour::end(endpoint, order);
    if (endpoint.is_up() || !strikes()) return;
    Completion entry = endpoint.completion_of({});
    entry.operation = Operation::endpoint_ended;
    entry.status = order.cause;
    endpoint.receive_queue().inject(entry);
  }
};

// ERR-7: "It needs no room". Here it is lost when the poll before it was filled to the brim.
class AnEndNeedsRoom final : public Behaviour {
 public:
  std::uint32_t capacity(std::uint32_t wanted) override {
    smallest_ = std::min(smallest_.load(), wanted);
    return wanted;
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    std::size_t& taken = taken_[&queue];
    if (count == 0) taken = 0;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const bool lost = out[i].operation == Operation::endpoint_ended && taken >= smallest_ && strikes();
      if (!lost) out[kept++] = out[i];
      if (is_send_side(out[i].operation) || out[i].operation == Operation::receive) ++taken;
    }
    return kept;
  }
  void gone(Queue& queue) override {
    const std::lock_guard lock(mutex_);
    taken_.erase(&queue);
  }

 private:
  std::atomic<std::uint32_t> smallest_{1U << 20};
  std::mutex mutex_;
  std::map<Queue*, std::size_t> taken_;
};

}  // namespace

void add_contract_endings(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) { add_blindly(mutants, std::move(mutant)); };
  add({"forgets-who-uses-a-region", "ERR-5", S::always, "", "", made<ForgetsWhoUsesARegion>()});
  add({"shared-receives-outlive-their-region", "ERR-5", S::corner, "", "",
       made<SharedReceivesOutliveTheirRegion>()});
  add({"tells-of-the-destroyed", "ERR-5", S::always, "", "", made<TellsOfTheDestroyed>()});
  add({"leaves-a-thread-behind", "ERR-5", S::corner, "", "", made<LeavesAThreadBehind>()});
  add({"leaves-memory-for-each-endpoint", "ERR-5", S::corner, "", "", made<LeavesMemoryForEachEndpoint>()});
  add({"endpoints-go-one-after-another", "ERR-5", S::corner, "", "", made<EndpointsGoOneAfterAnother>()});
  add({"its-thread-takes-one-signal", "ERR-6", S::corner, "", "", made<ItsThreadTakesOneSignal>()});
  add({"an-end-wakes-nobody", "ERR-7", S::always, "", "", made<AnEndWakesNobody>()});
  add({"what-never-was-up-ends-too", "ERR-7", S::always, "", "", made<WhatNeverWasUpEndsToo>()});
  add({"an-end-needs-room", "ERR-7", S::corner, "", "", made<AnEndNeedsRoom>()});
  // ERR-7: "with the first cause", and one entry each: now and then it is the second that counts.
  add({"an-end-is-lost-now-and-then",
       "ERR-7",
       S::rare,
       "",
       "",
       entry([](OnEntry& m, Completion& c) {
         return c.operation == Operation::endpoint_ended && m.strikes() ? 0 : 1;
       }),
       {},
       5});
}

}  // namespace mutants
