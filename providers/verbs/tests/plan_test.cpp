// Which requests are signalled, how tags and serial numbers are read, what timers come of a time, and how a
// device is named.
#include <gtest/gtest.h>

#include "chain.hpp"
#include "device_name.hpp"
#include "fabric.hpp"
#include "signals.hpp"
#include "weft/status.hpp"

namespace weft::verbs {
namespace {

using namespace std::chrono_literals;

TEST(SignalPlan, the_ring_never_fills_without_a_signal) {
  for (const std::uint32_t depth : {1U, 2U, 3U, 4U, 5U, 16U, 100U, 128U, 256U, 65'536U}) {
    SignalPlan plan(depth);
    std::uint32_t run = 0;
    for (int i = 0; i < 100'000; ++i) {
      run = plan.next(false) ? 0 : run + 1;
      ASSERT_LT(run, std::max(depth, 2U)) << "depth " << depth;
      ASSERT_LT(run, SignalPlan::longest_run);
      ASSERT_EQ(plan.trailing(), run != 0);
    }
  }
}

TEST(SignalPlan, a_steady_unsignalled_stream_has_few_signals) {
  SignalPlan plan(128);
  int signals = 0;
  for (int i = 0; i < 3200; ++i) signals += plan.next(false) ? 1 : 0;
  EXPECT_LE(signals, 3200 / 16);
  EXPECT_GE(signals, 3200 / 64);
}

TEST(SignalPlan, whoever_asks_gets_one_and_the_count_starts_anew) {
  SignalPlan plan(64);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(plan.next(false));
  EXPECT_TRUE(plan.next(true));
  EXPECT_FALSE(plan.trailing());
  for (std::uint32_t i = 1; i < plan.every(); ++i) EXPECT_FALSE(plan.next(false)) << i;
  EXPECT_TRUE(plan.next(false));
}

TEST(SignalPlan, after_requests_were_taken_back_the_next_is_signalled) {
  SignalPlan plan(128);
  EXPECT_FALSE(plan.next(false));
  plan.make_next();
  EXPECT_TRUE(plan.next(false));
}

TEST(Tag, side_slot_and_number_do_not_mix) {
  const std::uint64_t tag = Tag::receive | Tag::of(Tag::slot_limit - 1, 0xfedcba98);
  EXPECT_EQ(Tag::slot(tag), Tag::slot_limit - 1);
  EXPECT_EQ(Tag::number(tag), 0xfedcba98U);
  EXPECT_NE(tag & Tag::receive, 0U);
  EXPECT_EQ(tag & Tag::shared, 0U);
  EXPECT_EQ(Tag::of(Tag::slot_limit - 1, UINT32_MAX) & (Tag::receive | Tag::shared), 0U);
}

TEST(Serial, order_survives_the_wrap) {
  EXPECT_TRUE(at_or_before(5, 5));
  EXPECT_TRUE(at_or_before(4, 5));
  EXPECT_FALSE(at_or_before(6, 5));
  EXPECT_TRUE(at_or_before(UINT32_MAX, 3));
  EXPECT_FALSE(at_or_before(3, UINT32_MAX));
}

TEST(Chain, is_linked_for_one_call_and_whole_again_after_it) {
  auto chain = std::make_unique<Chain>();
  for (const std::size_t count : {std::size_t{1}, chain_length, std::size_t{3}, chain_length}) {
    for (std::size_t i = 0; i < count; ++i) {
      chain->next().wr_id = i;
      chain->take();
    }
    EXPECT_EQ(chain->full(), count == chain_length);
    int code = -1;
    const std::size_t taken = chain->hand_over(
        [&](ibv_send_wr* first, ibv_send_wr**) {
          std::size_t seen = 0;
          for (const ibv_send_wr* work = first; work != nullptr; work = work->next)
            EXPECT_EQ(work->wr_id, seen++);
          EXPECT_EQ(seen, count);
          return 0;
        },
        code);
    EXPECT_EQ(taken, count);
    EXPECT_EQ(code, 0);
    EXPECT_TRUE(chain->empty());
  }
}

TEST(Chain, tells_how_many_the_device_took) {
  auto chain = std::make_unique<Chain>();
  for (int i = 0; i < 5; ++i) chain->take();
  int code = 0;
  const std::size_t taken = chain->hand_over(
      [&](ibv_send_wr* first, ibv_send_wr** refused) {
        *refused = first->next->next;
        return ENOMEM;
      },
      code);
  EXPECT_EQ(taken, 2U);
  EXPECT_EQ(code, ENOMEM);
}

TEST(Timers, all_tries_fit_well_into_the_peer_timeout) {
  for (const auto time : {1s, 2s, 10s, 60s, 600s}) {
    const Timers timers = Timers::of(time, false);
    EXPECT_LE(Timers::of(time, true).gives_up_after(), std::chrono::milliseconds(time) * 9 / 20)
        << time.count();
    EXPECT_LE(timers.gives_up_after(), std::chrono::milliseconds(time) / 6) << time.count();
    EXPECT_GE(timers.acknowledge, 8);
    EXPECT_EQ(timers.probe_after, std::chrono::milliseconds(time) / 3);
  }
  EXPECT_EQ(Timers::of(10s, false).acknowledge, 15);
  EXPECT_EQ(Timers::of(10s, true).acknowledge, 17);
}

TEST(Timers, a_sender_without_receives_waits_less_than_its_acknowledge_timer) {
  for (std::uint8_t acknowledge = 9; acknowledge < 22; ++acknowledge) {
    const std::uint8_t code = Timers::receiver_dry(acknowledge);
    EXPECT_GE(code, Timers::receiver_not_ready);
    EXPECT_LE(code, 26);
    if (code == Timers::receiver_not_ready) continue;
    // The table of the specification, from 0.01 ms on, in ns.
    double wait = 40'000;
    for (unsigned i = 4; i < code; ++i) wait *= i % 2 == 0 ? 1.5 : 4.0 / 3.0;
    EXPECT_LE(wait, 4096.0 * static_cast<double>(1U << acknowledge) / 2 + 1) << +acknowledge;
  }
  EXPECT_EQ(Timers::receiver_dry(15), 25);
}

TEST(DeviceName, device_port_and_gid) {
  EXPECT_EQ(DeviceName::parse("").device, "");
  EXPECT_EQ(DeviceName::parse("mlx5_0").device, "mlx5_0");
  EXPECT_FALSE(DeviceName::parse("mlx5_0").port.has_value());
  const DeviceName name = DeviceName::parse("mlx5_0/2/17");
  EXPECT_EQ(name.device, "mlx5_0");
  EXPECT_EQ(name.port, 2);
  EXPECT_EQ(name.gid_index, 17U);
}

TEST(DeviceName, nonsense_is_refused_with_what_would_be_right) {
  for (const char* text : {"/1", "rxe0/", "rxe0/0", "rxe0/256", "rxe0/x", "rxe0/1/", "rxe0/1/-1",
                           "rxe0/1/70000", "rxe0/1/2/3", "rxe0/1 "}) {
    try {
      static_cast<void>(DeviceName::parse(text));
      ADD_FAILURE() << text << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Status::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("verbs:DEVICE"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace weft::verbs
