// CON-2: look-ups do not block the caller. The names used here are answered by /etc/hosts or refused at once.
#include "resolver.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "expect_error.hpp"

namespace weft::core {
namespace {

using namespace std::chrono_literals;

struct Mailbox {
  std::promise<Resolution> answer;
  std::promise<std::string> thread_name;
  std::atomic<bool> is_signal_blocked{false};
};

std::string current_thread_name() {
  std::array<char, 16> name{};
  ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  return name.data();
}

TEST(ResolverCon2, ANumericHostIsAnsweredAtOnceOnTheCallersThread) {
  const auto asker = std::make_shared<int>();
  for (const char* const host : {"127.0.0.1", "::1", "fe80::1%lo"}) {
    int answers = 0;
    std::thread::id thread;
    resolve({host, 7471}, asker, [&](const Resolution& resolution) {
      ++answers;
      thread = std::this_thread::get_id();
      EXPECT_EQ(resolution.status, Status::ok);
      ASSERT_EQ(resolution.addresses.size(), 1U);
      EXPECT_EQ(resolution.addresses[0], SocketAddress::from_numeric(host, 7471).value());
      EXPECT_EQ(resolution.error, "");
    });
    EXPECT_EQ(answers, 1);
    EXPECT_EQ(thread, std::this_thread::get_id());
  }
  EXPECT_TRUE(numeric_address({"10.0.0.1", 1}));
  EXPECT_FALSE(numeric_address({"localhost", 1}));
}

TEST(ResolverCon2, ANameIsAnsweredByAThreadThatTakesNoSignals) {
  const auto mailbox = std::make_shared<Mailbox>();
  resolve({"localhost", 7471}, mailbox, [box = mailbox.get()](Resolution resolution) {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    box->is_signal_blocked = ::sigismember(&mask, SIGTERM) == 1 && ::sigismember(&mask, SIGUSR1) == 1;
    box->thread_name.set_value(current_thread_name());
    box->answer.set_value(std::move(resolution));
  });
  auto answer = mailbox->answer.get_future();
  ASSERT_EQ(answer.wait_for(30s), std::future_status::ready);
  const Resolution resolution = answer.get();
  EXPECT_EQ(resolution.status, Status::ok) << resolution.error;
  ASSERT_FALSE(resolution.addresses.empty());
  for (const SocketAddress& address : resolution.addresses) {
    EXPECT_TRUE(address.is_loopback()) << address.to_string();
    EXPECT_EQ(address.port(), 7471);
  }
  for (std::size_t i = 0; i + 1 < resolution.addresses.size(); ++i) {
    EXPECT_NE(resolution.addresses[i], resolution.addresses[i + 1]);
  }
  EXPECT_EQ(mailbox->thread_name.get_future().get(), "weft-resolver");
  EXPECT_TRUE(mailbox->is_signal_blocked);
  // This thread still takes them.
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(::sigismember(&mask, SIGTERM), 0);
}

TEST(ResolverCon2, ANameThatCannotExistIsUnreachableAndTheTextSaysWhich) {
  const auto mailbox = std::make_shared<Mailbox>();
  // A label of more than 63 characters is refused without asking the network.
  const std::string host = std::string(64, 'x') + ".invalid";
  resolve({host, 1}, mailbox,
          [box = mailbox.get()](Resolution resolution) { box->answer.set_value(std::move(resolution)); });
  auto answer = mailbox->answer.get_future();
  ASSERT_EQ(answer.wait_for(60s), std::future_status::ready);
  const Resolution resolution = answer.get();
  EXPECT_EQ(resolution.status, Status::unreachable);
  EXPECT_TRUE(resolution.addresses.empty());
  EXPECT_SAYS(resolution.error, '"' + host + '"');
  EXPECT_SAYS(resolution.error, "numeric address");
}

TEST(ResolverCon2, NoHostIsAnErrorNotACrash) {
  const auto asker = std::make_shared<int>();
  Status status = Status::ok;
  resolve({"", 7}, asker, [&](const Resolution& resolution) { status = resolution.status; });
  EXPECT_EQ(status, Status::unreachable);
}

TEST(ResolverCon2, AnAskerThatIsGoneGetsNoAnswer) {
  std::atomic<int> answers{0};
  {
    const auto asker = std::make_shared<int>();
    std::weak_ptr<void> gone;
    { gone = std::make_shared<int>(); }
    resolve({"127.0.0.1", 1}, gone, [&](const Resolution&) { ++answers; });
    resolve({"localhost", 1}, gone, [&](const Resolution&) { ++answers; });
  }
  // A later question is answered; the pool is not stuck on the dead one.
  const auto mailbox = std::make_shared<Mailbox>();
  resolve({"localhost", 1}, mailbox,
          [box = mailbox.get()](Resolution resolution) { box->answer.set_value(std::move(resolution)); });
  ASSERT_EQ(mailbox->answer.get_future().wait_for(30s), std::future_status::ready);
  EXPECT_EQ(answers, 0);
}

// More questions than threads: each is answered once, and never more than the bound run at a time.
TEST(ResolverCon2, ManyQuestionsAreAnsweredByABoundedNumberOfThreads) {
  constexpr int questions = 40;
  struct Counts {
    std::atomic<int> answers{0};
    std::atomic<unsigned> inside{0};
    std::atomic<unsigned> most{0};
    std::promise<void> done;
  };
  const auto counts = std::make_shared<Counts>();
  for (int i = 0; i < questions; ++i) {
    resolve({"localhost", 1}, counts, [mine = counts.get()](const Resolution&) {
      const unsigned inside = ++mine->inside;
      unsigned most = mine->most;
      while (inside > most && !mine->most.compare_exchange_weak(most, inside)) {
      }
      std::this_thread::sleep_for(5ms);
      --mine->inside;
      if (++mine->answers == questions) mine->done.set_value();
    });
  }
  ASSERT_EQ(counts->done.get_future().wait_for(60s), std::future_status::ready);
  EXPECT_EQ(counts->answers, questions);
  EXPECT_LE(counts->most, resolver_threads);
  EXPECT_GT(counts->most, 1U);
}

// The parent's look-up threads do not exist in a forked child; its own must. The fork waits until all of them
// have left the C library: a child made while a thread is inside getaddrinfo inherits that library's own
// locks, and then its first look-up may hang whoever asks for it.
TEST(ResolverMem7, WorksInAForkedChildWhoseParentHasNoThreadFree) {
  const auto mailbox = std::make_shared<Mailbox>();
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<unsigned> occupied{0};
  for (unsigned i = 0; i < resolver_threads; ++i) {
    resolve({"localhost", 1}, mailbox, [released, &occupied](const Resolution&) {
      ++occupied;
      released.wait();
    });
  }
  for (int i = 0; i < 6000 && occupied < resolver_threads; ++i) std::this_thread::sleep_for(10ms);
  ASSERT_EQ(occupied, resolver_threads);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto own = std::make_shared<Mailbox>();
    resolve({"localhost", 1}, own,
            [box = own.get()](Resolution resolution) { box->answer.set_value(std::move(resolution)); });
    ::_exit(own->answer.get_future().wait_for(30s) == std::future_status::ready ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  release.set_value();
}

}  // namespace
}  // namespace weft::core
