#include <signal.h>
#include <sys/mman.h>

#include <atomic>

#include "link.hpp"

namespace weft::decorator_tests {
namespace {

TEST(Check, SaysNothingAboutAProgramThatIsRight) {
  LogLines lines(LogLevel::warning);
  Link link("check+tcp");
  for (int i = 0; i < 20; ++i) link.ping();
  const RemoteMemory remote = link.near.import_memory(link.region.key());
  EXPECT_EQ(link.near.write(link.region.slice(0, 100), remote.at(1000), 3), Status::ok);
  EXPECT_EQ(Link::next(link.near_queue, Operation::write).status, Status::ok);
  EXPECT_EQ(link.near.read(link.region.slice(2000, 100), remote.at(1000), 4), Status::ok);
  EXPECT_EQ(Link::next(link.near_queue, Operation::read).status, Status::ok);
  for (const char* kind : {"overlap", "altered", "outside", "refused", "second_thread", "left_unread"}) {
    EXPECT_EQ(link.counter(std::string("misuse_") + kind), 0U) << kind;
  }
  EXPECT_TRUE(lines.with("check: ").empty());
}

TEST(Check, FindsReceivesThatShareMemory) {
  LogLines lines(LogLevel::warning);
  Link link("check+tcp");
  EXPECT_EQ(link.far.receive(link.region.slice(0, 100), 0xa), Status::ok);
  EXPECT_EQ(link.far.receive(link.region.slice(99, 10), 0xb), Status::ok);
  EXPECT_EQ(link.far.receive(link.region.slice(200, 10), 0xc), Status::ok);
  EXPECT_EQ(link.counter("misuse_overlap"), 1U);
  ASSERT_EQ(lines.with("receive context=0xb").size(), 1U);
  EXPECT_EQ(lines.with("still belongs to receive context=0xa").size(), 1U);
}

TEST(Check, FindsASendFromMemoryThatAReceiveMayFill) {
  Link link("check+tcp");
  EXPECT_EQ(link.far.receive(link.region.slice(0, 100), 1), Status::ok);
  EXPECT_EQ(link.near.send(link.region.slice(50, 10), 2), Status::ok);
  EXPECT_EQ(link.counter("misuse_overlap"), 1U);
  // One buffer as the source of several is right (MEM-8).
  EXPECT_EQ(link.near.send(link.region.slice(500, 10), 3), Status::ok);
  EXPECT_EQ(link.near.send(link.region.slice(500, 10), 4), Status::ok);
  EXPECT_EQ(link.counter("misuse_overlap"), 1U);
}

TEST(Check, FindsASourceThatChangedBeforeItsCompletion) {
  LogLines lines(LogLevel::warning);
  Link link("check+tcp");
  EXPECT_EQ(link.far.receive(link.region.slice(0, 100), 1), Status::ok);
  EXPECT_EQ(link.near.send(link.region.slice(1000, 50), 0x5), Status::ok);
  link.memory[1020] = std::byte{1};
  (void)link.sent();
  EXPECT_EQ(link.counter("misuse_altered"), 1U);
  EXPECT_EQ(lines.with("the memory of send context=0x5 of endpoint").size(), 1U);
  // After the completion the memory is the program's.
  link.memory[1020] = std::byte{2};
  EXPECT_EQ(link.counter("misuse_altered"), 1U);
}

TEST(Check, AnUnsignalledSourceIsJudgedByTheNextCompletion) {
  Link link("check+tcp");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(link.far.receive(link.region.slice(100U * i, 100), 1), Status::ok);
  EXPECT_EQ(link.near.send(link.region.slice(1000, 50), 5, Flags::unsignalled), Status::ok);
  link.memory[1000] = std::byte{1};
  EXPECT_EQ(link.near.send(link.region.slice(2000, 50), 6), Status::ok);
  (void)link.sent();
  EXPECT_EQ(link.counter("misuse_altered"), 1U);
}

TEST(Check, SaysWhatIsWrongWithARequest) {
  LogLines lines(LogLevel::warning);
  Link link("check+tcp");
  const RemoteMemory remote = link.near.import_memory(link.region.key());
  EXPECT_EQ(link.near.send(link.region.slice(Link::size - 1, 2), 1), Status::invalid_argument);
  EXPECT_EQ(lines.with("is 2 bytes at offset 2097151 of a region of 2097152 bytes").size(), 1U);
  EXPECT_EQ(link.near.send(Segment{12345, 0, 1}, 1), Status::invalid_argument);
  EXPECT_EQ(lines.with("which is not registered").size(), 1U);
  EXPECT_EQ(link.near.write(link.region.slice(0, 2), remote.at(Link::size - 1), 1), Status::invalid_argument);
  EXPECT_EQ(lines.with("2 bytes at offset 2097151 do not lie in the remote region").size(), 1U);
  MemoryRegion source = link.context.register_memory(link.memory, Access::none);
  EXPECT_EQ(link.far.receive(source.slice(0, 1), 1), Status::invalid_argument);
  EXPECT_EQ(lines.with("without local_write").size(), 1U);
  EXPECT_EQ(link.counter("misuse_outside"), 4U);
}

TEST(Check, FindsCompletionsThatNobodyTook) {
  LogLines lines(LogLevel::warning);
  Link link("check+tcp");
  EXPECT_EQ(link.far.receive(link.region.slice(0, 100), 1), Status::ok);
  EXPECT_EQ(link.near.send(link.region.slice(1000, 50), 0x9), Status::ok);
  (void)link.received();
  link.near = Endpoint();
  EXPECT_EQ(link.counter("misuse_left_unread"), 1U);
  EXPECT_EQ(lines.with("send context=0x9").size(), 1U);
}

TEST(Check, FindsASecondThreadInModeSingle) {
  // One thread at a time is right, whichever it is.
  Link link("check+tcp", 256, ThreadMode::single);
  std::thread([&] { link.ping(); }).join();
  EXPECT_EQ(link.counter("misuse_second_thread"), 0U);
#ifdef NDEBUG  // a build with assertions finds it by itself, and ends the process
  std::atomic<bool> stop{false};
  std::thread other([&] {
    std::array<Completion, 4> room;
    while (!stop) (void)link.far_queue.poll(room);
  });
  const auto end = std::chrono::steady_clock::now() + 20s;
  std::array<Completion, 4> room;
  while (link.counter("misuse_second_thread") == 0 && std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 1000; ++i) (void)link.near_queue.poll(room);
  }
  stop = true;
  other.join();
  EXPECT_GE(link.counter("misuse_second_thread"), 1U);
#endif
}

TEST(Check, PoisonsWhatIsStillToCome) {
  const Variable poison("WEFT_CHECK_POISON", "1");
  Link link("check+tcp");
  link.memory[0] = std::byte{7};
  EXPECT_EQ(link.far.receive(link.region.slice(0, 64), 1), Status::ok);
  EXPECT_EQ(link.memory[0], std::byte{0xCB});
  link.memory[64] = std::byte{9};
  EXPECT_EQ(link.near.send(link.region.slice(64, 64), 2), Status::ok);
  EXPECT_EQ(link.received().status, Status::ok);
  EXPECT_EQ(link.memory[0], std::byte{9});
  // A receive that is not taken leaves the memory as it was.
  link.near.abort();
  (void)Link::next(link.near_queue, Operation::endpoint_ended);
  link.memory[500] = std::byte{5};
  EXPECT_EQ(link.near.receive(link.region.slice(500, 10), 1), Status::not_connected);
  EXPECT_EQ(link.memory[500], std::byte{5});
}

TEST(Check, EndsTheProcessWhenAskedTo) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto misuse = [] {
    const Variable action("WEFT_CHECK_ACTION", "abort");
    Link link("check+tcp");
    (void)link.far.receive(link.region.slice(0, 100), 0xa);
    (void)link.far.receive(link.region.slice(0, 100), 0xb);
  };
  EXPECT_EXIT(misuse(), testing::KilledBySignal(SIGABRT), "receive context=0xb");
}

TEST(Check, RefusesASettingItDoesNotKnow) {
  const Variable action("WEFT_CHECK_ACTION", "shout");
  ContextOptions options;
  options.provider = "check+tcp";
  EXPECT_THROW((void)Context::open(options), Error);
}

}  // namespace
}  // namespace weft::decorator_tests
