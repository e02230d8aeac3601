// Each fault of the plan strikes when it should, and does what the README says. A plan is read once per
// process, so every test runs in a child of its own.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "../peer_process.hpp"
#include "../verbs_side.hpp"

namespace fakeverbs_test {
namespace {

void expect_under_plan(const std::string& plan, const std::function<void(Wire&)>& body) {
  PeerProcess child([&](Wire& wire) {
    ::setenv("FAKEVERBS_PLAN", plan.c_str(), 1);
    body(wire);
  });
  EXPECT_EQ(child.wait(), 0) << "under the plan \"" << plan << '"';
}

TEST(Fault, GarbageInErrorEntriesOnly) {
  expect_under_plan("garbage", [](Wire&) {
    Link link;
    ASSERT_EQ(link.b.post_receive(1, {link.b.segment(0, 64)}), 0);
    ASSERT_EQ(link.a.send(1, 0, 64), 0);
    const auto good = link.a.next();
    EXPECT_COMPLETED(good, 1, IBV_WC_SUCCESS);
    EXPECT_EQ(good->opcode, IBV_WC_SEND);
    ASSERT_EQ(link.a.to(IBV_QPS_ERR), 0);
    int wrong_opcodes = 0;
    int lengths = 0;
    for (std::uint64_t id = 0; id < 32; ++id) {
      ASSERT_EQ(link.a.send(id, 0, 64), 0);
      const auto entry = link.a.next();
      EXPECT_COMPLETED(entry, id, IBV_WC_WR_FLUSH_ERR);
      EXPECT_EQ(entry->qp_num, link.a.pair->qp_num);
      wrong_opcodes += entry->opcode != IBV_WC_SEND ? 1 : 0;
      lengths += entry->byte_len != 0 ? 1 : 0;
    }
    EXPECT_GT(wrong_opcodes, 8);
    EXPECT_GT(lengths, 8);
  });
}

TEST(Fault, PostingFailsAtTheNth) {
  expect_under_plan("send-enomem=3, receive-enomem=/2", [](Wire&) {
    Link link;
    for (std::uint64_t id = 1; id <= 4; ++id) {
      EXPECT_EQ(link.b.post_receive(id, {link.b.segment(0, 64)}), id % 2 == 0 ? ENOMEM : 0);
    }
    for (std::uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(link.a.send(id, 0, 8), id == 3 ? ENOMEM : 0);
    EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_SUCCESS);
    EXPECT_COMPLETED(link.a.next(), 2, IBV_WC_SUCCESS);
    EXPECT_COMPLETED(link.b.next_received(), 1, IBV_WC_SUCCESS);
    EXPECT_COMPLETED(link.b.next_received(), 3, IBV_WC_SUCCESS);
  });
}

std::string refusals_with(const std::string& plan) {
  std::string refusals;
  PeerProcess child([&](Wire& wire) {
    ::setenv("FAKEVERBS_PLAN", plan.c_str(), 1);
    Link link(SideOptions{.send_depth = 64});
    for (std::uint64_t id = 0; id < 48; ++id) wire.put(link.a.send(id, 0, 8) == 0 ? '.' : 'x');
  });
  for (int count = 0; count < 48; ++count) refusals += child.wire().get<char>();
  EXPECT_EQ(child.wait(), 0);
  return refusals;
}

TEST(Fault, TheSeedDecides) {
  const std::string first = refusals_with("seed=7 send-enomem=30%");
  EXPECT_EQ(first, refusals_with("seed=7 send-enomem=30%"));
  EXPECT_NE(first, refusals_with("seed=8 send-enomem=30%"));
  const auto refused = std::count(first.begin(), first.end(), 'x');
  EXPECT_GT(refused, 4);
  EXPECT_LT(refused, 30);
}

TEST(Fault, RegistrationAndCreationFailAtTheNth) {
  expect_under_plan("register-enomem=2 create-enomem=4", [](Wire&) {
    // Two completion queues and a queue pair: the fourth creation is the next one.
    Side side;
    errno = 0;
    EXPECT_EQ(ibv_create_cq(side.context.get(), 16, nullptr, nullptr, 0), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(side.domain.get(), side.memory.data(), 64, all_rights), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    const RegionHandle region(ibv_reg_mr(side.domain.get(), side.memory.data(), 64, all_rights));
    EXPECT_TRUE(region);
  });
}

TEST(Fault, CompletionsComeLateButInOrder) {
  expect_under_plan("delay=/4:30000", [](Wire&) {
    Link link;
    const auto begin = Clock::now();
    for (std::uint64_t id = 0; id < 8; ++id) {
      ASSERT_EQ(link.b.post_receive(id, {link.b.segment(0, 64)}), 0);
      ASSERT_EQ(link.a.send(id, 0, 8), 0);
    }
    for (std::uint64_t id = 0; id < 8; ++id) EXPECT_COMPLETED(link.a.next(), id, IBV_WC_SUCCESS);
    EXPECT_GE(Clock::now() - begin, 30ms);
  });
}

TEST(Fault, ALateCompletionWakesASleeper) {
  expect_under_plan("delay=1:30000", [](Wire&) {
    Link link;
    ASSERT_EQ(link.b.post_receive(1, {link.b.segment(0, 64)}), 0);
    ASSERT_EQ(link.a.send(1, 0, 8), 0);
    ASSERT_EQ(ibv_req_notify_cq(link.b.receives.get(), 0), 0);
    // The usual look after arming finds nothing yet, so the program sleeps.
    ibv_wc entry{};
    ASSERT_EQ(ibv_poll_cq(link.b.receives.get(), 1, &entry), 0);
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    pollfd waiting{link.b.channel->fd, POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, 20'000), 1);
    ASSERT_EQ(ibv_get_cq_event(link.b.channel.get(), &queue, &context), 0);
    ibv_ack_cq_events(queue, 1);
    EXPECT_COMPLETED(link.b.next_received(), 1, IBV_WC_SUCCESS);
  });
}

TEST(Fault, TheDeviceGoes) {
  expect_under_plan("fatal=3", [](Wire&) {
    Link link;
    ASSERT_EQ(link.a.post_receive(50, {link.a.segment(0, 64)}), 0);
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(link.a.send(id, 0, 8), 0);
    EXPECT_EQ(link.a.next_event(), IBV_EVENT_DEVICE_FATAL);
    for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_COMPLETED(link.a.next(), id, IBV_WC_WR_FLUSH_ERR);
    EXPECT_COMPLETED(link.a.next_received(), 50, IBV_WC_WR_FLUSH_ERR);
    ASSERT_EQ(link.a.send(4, 0, 8), 0);
    EXPECT_COMPLETED(link.a.next(), 4, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(ibv_reg_mr(link.a.domain.get(), link.a.memory.data(), 64, all_rights), nullptr);
    EXPECT_EQ(errno, EIO);
  });
}

TEST(Fault, ThePortGoesDownAndComesBack) {
  expect_under_plan("port-down=2:50", [](Wire&) {
    Link link(ConnectOptions{.timeout = 14, .retries = 7});
    for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(link.b.post_receive(id, {link.b.segment(0, 64)}), 0);
    ASSERT_EQ(link.a.send(0, 0, 8), 0);
    EXPECT_COMPLETED(link.a.next(), 0, IBV_WC_SUCCESS);
    ASSERT_EQ(link.a.send(1, 0, 8), 0);
    EXPECT_EQ(link.a.next_event(), IBV_EVENT_PORT_ERR);
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(link.a.context.get(), 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_DOWN);
    EXPECT_EQ(link.a.next_event(), IBV_EVENT_PORT_ACTIVE);
    EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_SUCCESS);
  });
}

TEST(Fault, ThePortStaysDown) {
  expect_under_plan("port-down=1", [](Wire&) {
    Link link;
    ASSERT_EQ(link.a.send(1, 0, 8), 0);
    ASSERT_EQ(link.a.send(2, 0, 8), 0);
    EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_RETRY_EXC_ERR);
    EXPECT_COMPLETED(link.a.next(), 2, IBV_WC_WR_FLUSH_ERR);
  });
}

TEST(Fault, ThePeerIsLostInSilence) {
  expect_under_plan("lost=2", [](Wire&) {
    Link link;
    for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(link.b.post_receive(id, {link.b.segment(0, 64)}), 0);
    ASSERT_EQ(link.a.send(1, 0, 8), 0);
    EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_SUCCESS);
    ASSERT_EQ(link.a.send(2, 0, 8), 0);
    EXPECT_COMPLETED(link.a.next(), 2, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(link.b.state(), IBV_QPS_RTS) << "the other end hears nothing";
    EXPECT_FALSE(link.a.next_event(10ms).has_value());
  });
}

TEST(Fault, WrittenBytesAreSeenWithTheNextReceive) {
  expect_under_plan("relaxed=60000", [](Wire&) {
    Link link;
    link.a.fill(0, 64, 1);
    ASSERT_EQ(link.a.write(1, 0, 64, link.b.address(), 0), 0);
    EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_SUCCESS);
    EXPECT_FALSE(link.b.holds(0, 64, 1)) << "completed, and not to be seen yet";
    ASSERT_EQ(link.b.post_receive(2, {link.b.segment(1024, 64)}), 0);
    ASSERT_EQ(link.a.send(3, 0, 8), 0);
    EXPECT_COMPLETED(link.b.next_received(), 2, IBV_WC_SUCCESS);
    EXPECT_TRUE(link.b.holds(0, 64, 1));
  });
}

TEST(Fault, WrittenBytesAreSeenBehindARead) {
  expect_under_plan("relaxed=60000", [](Wire&) {
    Link link;
    link.a.fill(0, 64, 2);
    ASSERT_EQ(link.a.write(1, 0, 64, link.b.address(), 0), 0);
    ASSERT_EQ(link.a.read(2, 1024, 64, link.b.address(), 0), 0);
    EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_SUCCESS);
    EXPECT_COMPLETED(link.a.next(), 2, IBV_WC_SUCCESS);
    EXPECT_TRUE(link.b.holds(0, 64, 2));
    EXPECT_TRUE(link.a.holds(1024, 64, 2));
  });
}

TEST(Fault, WrittenBytesAreSeenInTheEnd) {
  expect_under_plan("relaxed=10", [](Wire&) {
    Link link;
    link.a.fill(0, 64, 2);
    ASSERT_EQ(link.a.write(1, 0, 64, link.b.address(), 0), 0);
    EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_SUCCESS);
    std::this_thread::sleep_for(15ms);
    // Reading memory that the device may be writing to is what this test is about; a second opinion comes
    // from a read.
    ASSERT_EQ(link.b.read(2, 1024, 64, link.a.address(), 0), 0);
    EXPECT_COMPLETED(link.b.next(), 2, IBV_WC_SUCCESS);
    EXPECT_TRUE(eventually([&] { return link.b.holds(0, 64, 2); }));
  });
}

TEST(Fault, TinyLimits) {
  expect_under_plan("tiny", [](Wire&) {
    Side side({.send_depth = 16, .receive_depth = 16, .segments = 1, .inline_bytes = 0, .entries = 64});
    ibv_device_attr limits{};
    ASSERT_EQ(ibv_query_device(side.context.get(), &limits), 0);
    EXPECT_EQ(limits.max_qp_wr, 16);
    EXPECT_EQ(limits.max_sge, 1);
    EXPECT_EQ(limits.max_qp_rd_atom, 1);
    EXPECT_EQ(limits.atomic_cap, IBV_ATOMIC_NONE);
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = side.sends.get();
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {17, 1, 1, 1, 0};
    EXPECT_EQ(ibv_create_qp(side.domain.get(), &attributes), nullptr);
    attributes.cap = {1, 1, 2, 1, 0};
    EXPECT_EQ(ibv_create_qp(side.domain.get(), &attributes), nullptr);
    attributes.cap = {1, 1, 1, 1, 1};
    EXPECT_EQ(ibv_create_qp(side.domain.get(), &attributes), nullptr);
    ibv_cq_init_attr_ex extended{};
    extended.cqe = 16;
    EXPECT_EQ(ibv_create_cq_ex(side.context.get(), &extended), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  });
}

TEST(Fault, DestroyingAPairTakesItsTime) {
  expect_under_plan("slow-destroy=20", [](Wire&) {
    Link link;
    const auto start = std::chrono::steady_clock::now();
    link.a.pair.reset();
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
  });
}

TEST(NullMode, CompletesAtOnceAndTouchesNothing) {
  PeerProcess child([](Wire&) {
    ::setenv("FAKEVERBS_NULL", "1", 1);
    Link link;
    link.a.fill(0, 64, 1);
    ASSERT_EQ(link.a.send(1, 0, 64), 0);  // there is not even a receive
    EXPECT_COMPLETED(link.a.next(), 1, IBV_WC_SUCCESS);
    ASSERT_EQ(link.a.write(2, 0, 64, link.b.address(), 0), 0);
    EXPECT_COMPLETED(link.a.next(), 2, IBV_WC_SUCCESS);
    EXPECT_FALSE(link.b.holds(0, 64, 1));
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(Plan, AMistakeInItEndsTheProgram) {
  for (const char* plan :
       {"garbge", "send-enomem", "send-enomem=x", "seed=", "entries=99999999", "garbage=2"}) {
    PeerProcess child([&](Wire&) {
      ::setenv("FAKEVERBS_PLAN", plan, 1);
      static_cast<void>(open_device());
    });
    EXPECT_EQ(child.wait(), EXIT_FAILURE) << plan;
  }
}

}  // namespace
}  // namespace fakeverbs_test
