// Peers in other processes: killed, stopped, forked (ERR-3, MEM-7).
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "fake_provider.hpp"
#include "pair.hpp"

namespace weft::test {
namespace {

// A forked process, killed at the end.
class Process {
 public:
  // `work` runs in the child, which never returns from it.
  explicit Process(const std::function<void()>& work) {
    // A sanitizer's own locks do not survive a fork beside a thread that is just starting.
    std::this_thread::sleep_for(20ms);
    id_ = ::fork();
    if (id_ != 0) return;
    work();
    ::_exit(0);
  }
  ~Process() {
    kill(SIGKILL);
    (void)wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  void kill(int signal) const {
    if (id_ > 0) ::kill(id_, signal);
  }
  int wait() {
    int status = 0;
    if (id_ <= 0) return 0;
    ::waitpid(id_, &status, 0);
    id_ = 0;
    return status;
  }

 private:
  pid_t id_ = 0;
};

// In a child: connects, and then does as told.
void connect_and(const std::string& address, const std::function<void(Endpoint&)>& then) {
  auto open = open_fake();
  auto queue = open.context.create_completion_queue();
  auto endpoint = open.context.connect(address, with_queue(queue));
  endpoint.wait_up(5s);
  then(endpoint);
}

struct Server {
  FakeOpen open;
  CompletionQueue queue;
  Listener listener;
  Endpoint endpoint;

  explicit Server(std::chrono::milliseconds peer_timeout = 10s) {
    FakeBehaviour behaviour;
    behaviour.peer_timeout = peer_timeout;
    open = open_fake(behaviour);
    queue = open.context.create_completion_queue();
    ListenOptions options;
    options.queue = queue;
    listener = open.context.listen("127.0.0.1:0", options);
  }
  void accept() {
    (void)next(queue, Operation::connection_request);
    auto request = listener.next();
    ASSERT_TRUE(request);
    endpoint = request->accept(with_queue(queue));
    endpoint.wait_up(5s);
  }
};

TEST(Process, AKilledPeerIsNoticedAtOnce) {
  Server server;
  const std::string address = server.listener.address();
  Process peer([&] { connect_and(address, [](Endpoint&) { ::pause(); }); });
  server.accept();
  peer.kill(SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(next(server.queue, Operation::endpoint_ended).status, Status::peer_lost);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
}

TEST(Process, AStoppedPeerIsNotDeclaredDead) {
  Server server(500ms);
  const std::string address = server.listener.address();
  Process peer([&] {
    connect_and(address, [](Endpoint& endpoint) {
      while (endpoint.state() != EndpointState::ended) std::this_thread::sleep_for(10ms);
      ::_exit(endpoint.cause() == Status::disconnected ? 7 : 8);
    });
  });
  server.accept();
  peer.kill(SIGSTOP);
  std::this_thread::sleep_for(2s);
  EXPECT_TRUE(drain(server.queue).empty());
  EXPECT_EQ(server.endpoint.state(), EndpointState::up);
  peer.kill(SIGCONT);
  server.endpoint.close(5s);
  EXPECT_EQ(next(server.queue, Operation::endpoint_ended).status, Status::local_close);
  EXPECT_EQ(WEXITSTATUS(peer.wait()), 7);
}

TEST(Process, AStoppedPeerLearnsOfAllEndsLater) {
  // More ends than are sent to a peer that does not answer.
  constexpr int count = 600;
  Server server(500ms);
  const std::string address = server.listener.address();
  Process peer([&] {
    auto open = open_fake();
    auto queue = open.context.create_completion_queue();
    std::vector<Endpoint> endpoints;
    for (int i = 0; i < count; ++i) endpoints.push_back(open.context.connect(address, with_queue(queue)));
    int aborted = 0;
    std::array<Completion, 1> entry;
    while (aborted < count) {
      for (const Completion& c : queue.wait(entry, 20s)) {
        if (c.operation == Operation::endpoint_ended && c.status == Status::aborted) ++aborted;
      }
    }
    ::_exit(7);
  });
  std::vector<Endpoint> endpoints;
  for (int i = 0; i < count; ++i) {
    (void)next(server.queue, Operation::connection_request);
    endpoints.push_back(server.listener.next()->accept(with_queue(server.queue)));
  }
  for (Endpoint& endpoint : endpoints) endpoint.wait_up(10s);
  peer.kill(SIGSTOP);
  for (Endpoint& endpoint : endpoints) endpoint.abort();
  std::this_thread::sleep_for(1s);
  peer.kill(SIGCONT);
  EXPECT_EQ(WEXITSTATUS(peer.wait()), 7);
}

TEST(Process, AParentsDeathIsNoticedAlthoughItsChildLives) {
  Server server;
  const std::string address = server.listener.address();
  int life[2];  // the grandchild lives while the writing end is open here
  ASSERT_EQ(::pipe(life), 0);
  Process parent([&] {
    connect_and(address, [&](Endpoint&) {
      if (::fork() == 0) {
        ::close(life[1]);
        char byte = 0;
        (void)!::read(life[0], &byte, 1);
        ::_exit(0);
      }
      ::pause();
    });
  });
  server.accept();
  std::this_thread::sleep_for(100ms);
  parent.kill(SIGKILL);
  EXPECT_EQ(next(server.queue, Operation::endpoint_ended).status, Status::peer_lost);
  ::close(life[0]);
  ::close(life[1]);
}

TEST(Process, InAChildEverythingIsInertAndTheParentGoesOn) {
  auto one = std::make_unique<FakeOpen>(open_fake());
  auto two = std::make_unique<FakeOpen>(open_fake());
  auto pair = std::make_unique<Pair>(one->context, two->context);
  char memory[8];
  auto region = one->context.register_memory(memory, sizeof memory, Access::local_write);
  Process child([&] {
    std::array<Completion, 1> entry;
    const auto check = [](bool right, int step) {
      if (!right) ::_exit(step);
    };
    const auto throws = [](const std::function<void()>& call) {
      try {
        call();
      } catch (const Error& error) {
        return error.code() == Status::not_connected;
      }
      return false;
    };
    check(pair->client.send({}, 1) == Status::not_connected, 1);
    check(pair->client_queue.poll(entry).reason() == Polled::Reason::failed, 2);
    check(pair->client_queue.wait(entry, -1s).reason() == Polled::Reason::failed, 3);
    check(!pair->client_queue.arm(), 4);
    check(throws([&] { (void)one->context.create_completion_queue(); }), 5);
    check(throws([&] { (void)one->context.connect("127.0.0.1:1", with_queue(pair->client_queue)); }), 6);
    check(throws([&] { (void)pair->client_queue.descriptor(); }), 7);
    check(pair->client.state() == EndpointState::ended, 8);
    pair->client.close(1s);
    pair->server.abort();
    check(region.deregister() == Status::not_connected, 9);
    region = {};
    pair.reset();
    one.reset();
    two.reset();
    // A context of the child's own works.
    FakeOpen own = open_fake();
    Pair own_pair(own.context, own.context);
    check(own_pair.client.state() == EndpointState::up, 10);
    ::_exit(42);
  });
  const int status = child.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
  ASSERT_EQ(pair->server.receive({}, 1), Status::ok);
  ASSERT_EQ(pair->client.send({}, 2), Status::ok);
  EXPECT_EQ(next(pair->server_queue, Operation::receive).status, Status::ok);
  pair->client.close(5s);
  EXPECT_EQ(next(pair->server_queue, Operation::endpoint_ended).status, Status::disconnected);
}

// What the core itself reports waits in a list of its own: the parent's, with the parent's lock.
TEST(Process, AChildIsNotHandedWhatTheParentWasToHear) {
  Server server;
  pollfd heard{server.queue.descriptor(), POLLIN, 0};
  ASSERT_TRUE(server.queue.arm());
  auto one = open_fake();
  auto queue = one.context.create_completion_queue();
  auto client = one.context.connect(server.listener.address(), with_queue(queue));
  ASSERT_EQ(::poll(&heard, 1, 5'000), 1);
  Process child([&] {
    std::array<Completion, 1> entry;
    for (const Polled& got : {server.queue.poll(entry), server.queue.wait(entry, 0s)}) {
      if (!got.empty() || got.reason() != Polled::Reason::failed) ::_exit(1);
    }
    ::_exit(42);
  });
  const int status = child.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_EQ(next(server.queue, Operation::connection_request).status, Status::ok);
}

}  // namespace
}  // namespace weft::test
