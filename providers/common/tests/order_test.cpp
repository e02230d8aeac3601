// What must not come too early: fenced operations, completions of reads, reports among entries, tokens of old
// imports.
#include <gtest/gtest.h>

#include "pair.hpp"

namespace weft::engine::test {
namespace {

TEST(Order, ORD_4_a_fenced_write_waits_for_the_read_before_it) {
  Pair pair;
  pair.go_up();
  pair.b.fill(0, 64, 1);
  pair.a.fill(1000, 64, 99);
  ASSERT_EQ(pair.a.one_sided(Operation::read, pair.a.segment(0, 64), pair.at_b(0), 1), Status::ok);
  ASSERT_EQ(pair.a.one_sided(Operation::write, pair.a.segment(1000, 64), pair.at_b(0), 2, Flags::fence),
            Status::ok);
  while (pair.b.endpoint->deliver()) {
  }
  EXPECT_TRUE(pair.b.holds(0, 64, 1)) << "the answer is not there yet";
  pair.settle();
  EXPECT_TRUE(pair.a.holds(0, 64, 1));
  EXPECT_TRUE(pair.b.holds(0, 64, 99));
  ASSERT_EQ(pair.a.seen.size(), 2U);
  EXPECT_EQ(pair.a.seen[0].context, 1U);
}

TEST(Order, CMP_3_reads_and_writes_complete_with_their_answers_only) {
  Pair pair;
  pair.go_up();
  for (const Operation operation : {Operation::read, Operation::write, Operation::flush}) {
    ASSERT_EQ(pair.a.one_sided(operation, pair.a.segment(0, 64), pair.at_b(0), 1), Status::ok);
    pair.a.endpoint->resume();
    Pair::take(pair.a);
    EXPECT_TRUE(pair.a.seen.empty()) << to_string(operation);
    pair.settle();
    EXPECT_EQ(pair.a.seen.size(), 1U) << to_string(operation);
    pair.a.seen.clear();
  }
}

TEST(Order, PRG_5_an_answer_completes_the_unsignalled_writes_before_it) {
  for (const Operation operation : {Operation::read, Operation::fetch_add}) {
    Pair pair;
    pair.go_up();
    const std::uint64_t length = operation == Operation::read ? 64 : 8;
    for (std::uint64_t round = 1; round <= 3; ++round) {
      ASSERT_EQ(
          pair.a.one_sided(Operation::write, pair.a.segment(0, 64), pair.at_b(0), 1, Flags::unsignalled),
          Status::ok);
      ASSERT_EQ(pair.a.one_sided(operation, pair.a.segment(4096, length), pair.at_b(4096), 2), Status::ok);
      pair.settle();
      EXPECT_EQ(pair.a.seen.size(), round)
          << to_string(operation) << " waits for the write to be acknowledged";
    }
  }
}

class OneReport final : public Reporter {
 public:
  std::size_t hand_out(Completion* out, std::size_t room, std::uint32_t& /*released*/) noexcept override {
    if (room == 0 || !due_) return 0;
    due_ = false;
    *out = {};
    out->context = 2;
    return 1;
  }
  [[nodiscard]] bool has_more() const noexcept override { return due_; }

 private:
  bool due_ = true;
};

TEST(Order, ERR_7_a_report_keeps_its_place_among_the_entries) {
  for (const std::size_t at_once : {1U, 2U, 16U}) {
    FakeHost host;
    FakeQueueEvents queue_events;
    PlainContext context(host, {});
    PlainQueue queue(context, 4, queue_events);
    OneReport report;
    {
      const Entry entry(queue.gate());
      ASSERT_TRUE(queue.reserve());
      ASSERT_TRUE(queue.reserve());
      Completion completion;
      completion.context = 1;
      queue.push(completion);
      queue.add(report);
      completion.context = 3;
      queue.push(completion);
    }
    std::vector<std::uint64_t> order;
    std::array<Completion, 16> entries;
    while (const std::size_t count = queue.poll(entries.data(), at_once)) {
      for (std::size_t i = 0; i < count; ++i) order.push_back(entries[i].context);
    }
    EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 2, 3})) << at_once << " at once";
  }
}

TEST(Order, MEM_3_the_token_of_a_dropped_import_stays_dead_when_its_slot_is_used_again) {
  Pair pair;
  pair.go_up();
  const auto first = pair.a.endpoint->import_key(pair.b.region->key());
  pair.a.endpoint->release_key(first.token);
  const auto second = pair.a.endpoint->import_key(pair.b.region->key());
  EXPECT_NE(first.token, second.token);
  EXPECT_EQ(pair.a.one_sided(Operation::write, pair.a.segment(0, 8), {first.token, 0}, 1),
            Status::invalid_argument);
  EXPECT_EQ(pair.a.one_sided(Operation::write, pair.a.segment(0, 8), {second.token, 0}, 1), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.b.events.failures, 0);
}

}  // namespace
}  // namespace weft::engine::test
