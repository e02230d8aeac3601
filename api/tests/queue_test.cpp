// Completion queues: the core's own reports, waking, arming (CMP-6, PRG-3, PRG-4).
#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

#include "fake_provider.hpp"
#include "pair.hpp"

namespace weft::test {
namespace {

bool is_readable(int descriptor) {
  pollfd ready{descriptor, POLLIN, 0};
  return ::poll(&ready, 1, 0) == 1;
}

struct Queue {
  FakeOpen open = open_fake();
  CompletionQueue queue = open.context.create_completion_queue({.capacity = 1});
  std::array<Completion, 4> entries;

  // A report of the core's own.
  Endpoint fail_to_connect() { return open.context.connect("127.0.0.1:1", with_queue(queue)); }
};

TEST(Queue, TellsEmptyTimeoutWokenApart) {
  Queue q;
  EXPECT_EQ(q.queue.poll(q.entries).reason(), Polled::Reason::empty);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(q.queue.wait(q.entries, 30ms).reason(), Polled::Reason::timeout);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 30ms);
  EXPECT_EQ(q.queue.wait(q.entries, 0ms).reason(), Polled::Reason::timeout);
  q.queue.wake();
  EXPECT_EQ(q.queue.poll(q.entries).reason(), Polled::Reason::empty) << "a poll takes no wake";
  EXPECT_EQ(q.queue.wait(q.entries, 5s).reason(), Polled::Reason::woken);
  EXPECT_EQ(q.queue.wait(q.entries, 10ms).reason(), Polled::Reason::timeout) << "one wake, one waiter";
}

TEST(Queue, AWakeReachesASleeper) {
  Queue q;
  std::thread waiter([&q] { EXPECT_EQ(q.queue.wait(q.entries, -1s).reason(), Polled::Reason::woken); });
  std::this_thread::sleep_for(20ms);
  q.queue.wake();
  waiter.join();
}

TEST(Queue, EachWakeReachesOneOfTheWaiters) {
  Queue q;
  std::atomic<int> woken{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 3; ++i) {
    waiters.emplace_back([&] {
      std::array<Completion, 1> entry;
      if (q.queue.wait(entry, 10s).reason() == Polled::Reason::woken) ++woken;
    });
  }
  std::this_thread::sleep_for(50ms);
  q.queue.wake();
  EXPECT_TRUE(eventually([&] { return woken == 1; }));
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(woken, 1);
  q.queue.wake();
  q.queue.wake();
  for (auto& waiter : waiters) waiter.join();
  EXPECT_EQ(woken, 3);
}

TEST(Queue, ReportsNeedNoRoom) {
  Queue q;
  std::vector<Endpoint> endpoints;
  for (int i = 0; i < 20; ++i) endpoints.push_back(q.fail_to_connect());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(next(q.queue, Operation::connect).status, Status::refused);
}

TEST(Queue, TheDescriptorIsReadableForWhatComesAfterArming) {
  Queue q;
  const int descriptor = q.queue.descriptor();
  ASSERT_TRUE(q.queue.arm());
  EXPECT_FALSE(is_readable(descriptor));
  auto endpoint = q.fail_to_connect();
  EXPECT_TRUE(eventually([&] { return is_readable(descriptor); }));
  EXPECT_FALSE(q.queue.arm()) << "something is there";
  EXPECT_EQ(q.queue.poll(q.entries).size(), 1U);
  EXPECT_TRUE(q.queue.arm());
  EXPECT_FALSE(is_readable(descriptor));
  q.queue.wake();
  EXPECT_TRUE(is_readable(descriptor));
  EXPECT_FALSE(q.queue.arm());
  EXPECT_EQ(q.queue.wait(q.entries, 0s).reason(), Polled::Reason::woken);
  EXPECT_TRUE(q.queue.arm());
}

TEST(Queue, AProvidersCompletionMakesTheDescriptorReadable) {
  Queue q;
  Pair pair(q.open.context, q.open.context);
  const int descriptor = pair.client_queue.descriptor();
  ASSERT_TRUE(pair.client_queue.arm());
  EXPECT_FALSE(is_readable(descriptor));
  ASSERT_EQ(pair.client.send({}, 1), Status::ok);
  EXPECT_TRUE(is_readable(descriptor));
}

TEST(Queue, WhatWasReportedBeforeTheDescriptorExistedIsNotLost) {
  Queue q;
  auto endpoint = q.fail_to_connect();
  EXPECT_TRUE(eventually([&] { return endpoint.state() == EndpointState::ended; }));
  EXPECT_FALSE(q.queue.arm());
  EXPECT_TRUE(is_readable(q.queue.descriptor()));
}

TEST(Queue, EmptyHandlesAndBadCapacitiesAreToldSo) {
  CompletionQueue none;
  std::array<Completion, 1> entry;
  EXPECT_EQ(none.poll(entry).reason(), Polled::Reason::failed);
  EXPECT_EQ(none.wait(entry, -1s).reason(), Polled::Reason::failed);
  EXPECT_FALSE(none.arm());
  EXPECT_THROW((void)none.descriptor(), Error);
  Queue q;
  EXPECT_THROW((void)q.open.context.create_completion_queue({.capacity = 0}), Error);
  EXPECT_THROW((void)q.open.context.create_completion_queue({.capacity = (1 << 20) + 1}), Error);
}

}  // namespace
}  // namespace weft::test
