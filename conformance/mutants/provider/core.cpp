// Mutants of rules that the core keeps: addresses, private data, strangers, limits, forks and signals. Some
// are wrong providers, some are wrong calls beneath the core.
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <thread>

#include "mutant.hpp"

namespace mutants {
namespace {

using namespace std::chrono_literals;

rlim_t limit_of(decltype(RLIMIT_NOFILE) which) {
  rlimit limit{};
  getrlimit(which, &limit);
  return limit.rlim_cur;
}

class NamesNoLimit final : public Behaviour {
 public:
  void registering(weft::RegistrationRequest& request) override {
    if (request.length > limit_of(RLIMIT_MEMLOCK) && strikes())
      throw weft::Error(Status::resource_limit, "not enough memory");
  }
};

class NamesALimitWithoutItsValue final : public Behaviour {
 public:
  void prepared(const provider::EndpointRequest& /*request*/) override {
    if (limit_of(RLIMIT_NOFILE) < 100 && strikes())
      throw weft::Error(Status::resource_limit, "too many open descriptors (RLIMIT_NOFILE)");
  }
};

// Copies of all connections, of which nobody closes those that a child inherits.
class AChildKeepsTheConnection final : public Behaviour {
 public:
  void go_up(Endpoint& endpoint) override {
    Behaviour::go_up(endpoint);
    const std::lock_guard lock(mutex_);
    (void)strikes();
    std::error_code error;
    std::vector<int> sockets;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
      const int descriptor = std::stoi(entry.path().filename().string());
      sockaddr_storage address{};
      socklen_t size = sizeof address;
      if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
          (address.ss_family == AF_INET || address.ss_family == AF_INET6)) {
        sockets.push_back(descriptor);
      }
    }
    for (const int descriptor : sockets)
      copies_[&endpoint].push_back(fcntl(descriptor, F_DUPFD_CLOEXEC, 100));
  }
  void silence(Endpoint& endpoint) override {
    Behaviour::silence(endpoint);
    const std::lock_guard lock(mutex_);
    for (const int copy : copies_[&endpoint]) ::close(copy);
    copies_.erase(&endpoint);
  }

 private:
  std::mutex mutex_;
  std::map<Endpoint*, std::vector<int>> copies_;
};

std::atomic<bool> has_forked{false};

// What is sent after a fork is lost.
class AForkEndsTheParentsTransfers final : public Behaviour {
 public:
  AForkEndsTheParentsTransfers() {
    static const int handler = pthread_atfork(
        nullptr, [] { has_forked = true; }, nullptr);
    (void)handler;
  }
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (has_forked && count == 1 && requests[0].operation == Operation::send && strikes()) {
      endpoint.send_queue().inject(endpoint.completion_of(requests[0]));
      return {Status::ok, 1};
    }
    return Behaviour::post(endpoint, requests, count);
  }
};

class ItsThreadTakesSignals final : public Behaviour {
 public:
  void open(provider::Context& /*inner*/, const provider::OpenRequest& /*request*/) override {
    (void)strikes();
    helper_ = std::thread([this] {
      sigset_t none;
      sigemptyset(&none);
      pthread_sigmask(SIG_SETMASK, &none, nullptr);
      while (!stop_) std::this_thread::sleep_for(5ms);
    });
  }
  ~ItsThreadTakesSignals() override {
    stop_ = true;
    if (helper_.joinable()) helper_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread helper_;
};

bool is_an_attack(const provider::EndOrder& order) {
  return order.cause == Status::protocol || order.cause == Status::remote_access_error;
}

// A peer that asks for more than it may gets at memory all the same.
class WritesBesideWhenAttacked final : public Behaviour {
 public:
  void registering(weft::RegistrationRequest& request) override {
    // Large ones: what is merely received into is small.
    if (request.length < 50'000) return;
    const std::lock_guard lock(mutex_);
    place_ = static_cast<unsigned char*>(request.address);
  }
  void end(Endpoint& endpoint, const provider::EndOrder& order) override {
    {
      const std::lock_guard lock(mutex_);
      if (is_an_attack(order) && place_ != nullptr && strikes()) *place_ = 0x11;
    }
    Behaviour::end(endpoint, order);
  }

 private:
  std::mutex mutex_;
  unsigned char* place_ = nullptr;
};

class OneBadPeerEndsAnother final : public Behaviour {
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
      if (is_an_attack(order) && !up_.empty()) {
        other = up_.front();
        up_.erase(up_.begin());
      }
    }
    Behaviour::end(endpoint, order);
    if (other != nullptr && strikes()) other->events().failed(Status::aborted, 0, 0, "somebody was attacked");
  }
  void destroyed(Endpoint& endpoint) override {
    const std::lock_guard lock(mutex_);
    std::erase(up_, &endpoint);
  }

 private:
  std::mutex mutex_;
  std::vector<Endpoint*> up_;
};

// An attacked endpoint is ended as if nothing had been wrong.
class KeepsQuietAboutAttacks final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].operation == Operation::endpoint_ended && out[i].status == Status::protocol && strikes())
        out[i].status = Status::disconnected;
    }
    return count;
  }
};

class ServesNobodyInModeSingle final : public Behaviour {
 public:
  void open(provider::Context& /*inner*/, const provider::OpenRequest& request) override {
    single_ = request.thread_mode == weft::ThreadMode::single;
  }
  Clock::time_point service(provider::Context& inner, Clock::time_point now) override {
    if (!single_ || !strikes()) return Behaviour::service(inner, now);
    return Clock::time_point::max();
  }

 private:
  bool single_ = false;
};

Mutant beneath(const char* name, const char* rule, Strength strength, const char* tests) {
  Mutant mutant;
  mutant.name = name;
  mutant.rule = rule;
  mutant.strength = strength;
  mutant.tests = tests;
  mutant.beneath = true;
  return mutant;
}

}  // namespace

void add_core(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) { mutants.push_back(std::move(mutant)); };
  add(beneath("tries-one-address", "CON-1", S::always, "a_name_is_tried"));
  add(beneath("loses-the-scope", "CON-1", S::corner, "addresses_and_scopes"));
  add(beneath("hands-out-the-wildcard", "CON-1", S::always, "wildcard"));
  mutants.back().spares = {"CON_1"};
  add(beneath("private-data-changes-its-last-byte", "CON-4", S::corner, ""));
  add(beneath("rejects-with-a-byte-less", "CON-4", S::always, "reject"));
  add(beneath("listens-to-garbage", "CON-7", S::always, "garbage"));
  add(beneath("speaks-every-version", "CON-7", S::corner, "begun_wrongly"));
  add(beneath("raises-sigpipe", "ERR-6", S::always, "a_vanished_peer"));
  add({"its-thread-takes-signals", "ERR-6", S::always, "helper_threads", "takes signal",
       made<ItsThreadTakesSignals>()});
  add({"names-no-limit", "MEM-6", S::always, "a_limit_that", "", made<NamesNoLimit>()});
  add({"names-a-limit-without-its-value", "MEM-6", S::corner, "running_out", "value",
       made<NamesALimitWithoutItsValue>()});
  add({"a-child-keeps-the-connection", "MEM-7", S::always, "the_parents_death", "",
       made<AChildKeepsTheConnection>()});
  add({"a-fork-ends-the-parents-transfers", "MEM-7", S::always, "after_fork", "",
       made<AForkEndsTheParentsTransfers>()});
  add({"writes-beside-when-attacked", "SEC-1", S::corner, "honest", "", made<WritesBesideWhenAttacked>()});
  add({"one-bad-peer-ends-another", "SEC-1", S::corner, "honest", "", made<OneBadPeerEndsAnother>()});
  add({"keeps-quiet-about-attacks", "SEC-1", S::corner, "honest", "ended it as",
       made<KeepsQuietAboutAttacks>()});
  add({"serves-nobody-in-mode-single", "THR-2", S::corner, "", "", made<ServesNobodyInModeSingle>()});
}

}  // namespace mutants
