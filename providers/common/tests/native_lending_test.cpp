// What is lent, to whom, and what a hostile peer may say of it.
#include <gtest/gtest.h>

#include "native_pair.hpp"

namespace weft::engine::test {
namespace {

constexpr auto everything = weft::Access::local_write | weft::Access::remote_read |
                            weft::Access::remote_write | weft::Access::remote_atomic;

TEST(Lending, MEM_3_keys_are_dropped_and_imported_while_words_of_them_are_under_way) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    MessageSide::Options options = natively();
    options.weather.seed = seed;
    options.weather.most_delivered = 1;
    options.weather.mixes_natives = true;
    MessagePair pair(options);
    pair.go_up();
    std::mt19937_64 random(seed);
    std::vector<std::vector<std::byte>> memory(3, std::vector<std::byte>(large));
    std::vector<std::unique_ptr<provider::MemoryRegion>> regions;
    for (auto& bytes : memory)
      regions.push_back(pair.b.context.register_memory(
          {.address = bytes.data(), .length = bytes.size(), .access = everything}));
    FakeFabricEndpoint& a = *pair.a.ends[0].endpoint;
    for (std::uint64_t round = 0; round < 200; ++round) {
      const std::size_t which = random() % regions.size();
      const auto imported = a.import_key(regions[which]->key());
      for (std::uint64_t i = random() % 6; i != 0; --i) {
        pair.a.poll();
        pair.b.poll();
      }
      pair.a.fill(0, large, round);
      pair.a.ends[0].peer_memory = imported;
      pair.a.seen.clear();
      ASSERT_EQ(pair.a.post(Operation::write, 0, large, round, 0), Status::ok);
      if (random() % 2 == 0) a.release_key(imported.token);
      for (int i = 0; i < 10'000 && pair.a.seen.empty(); ++i) {
        pair.a.poll();
        pair.b.poll();
      }
      ASSERT_EQ(pair.a.seen.size(), 1U) << round;
      ASSERT_EQ(pair.a.seen[0].status, Status::ok);
      ASSERT_EQ(std::memcmp(memory[which].data(), pair.a.memory.data(), large), 0) << round;
      a.release_key(imported.token);
    }
    pair.settle();
    EXPECT_EQ(pair.a.ends[0].events.failures, 0) << pair.a.ends[0].events.what;
    EXPECT_EQ(pair.b.ends[0].events.failures, 0) << pair.b.ends[0].events.what;
    EXPECT_EQ(a.borrowed.size(), 1U) << "of what was dropped nothing is kept";
    EXPECT_GT(a.natives_taken, 100);
    for (auto& region : regions) EXPECT_EQ(region->deregister(), Status::ok);
  }
}

TEST(Lending, MEM_3_one_who_cannot_use_a_key_gives_it_back_and_is_not_asked_again) {
  MessagePair pair(natively());
  pair.a.ends[0].endpoint->cannot_borrow = true;
  pair.go_up();
  ASSERT_EQ(pair.a.post(Operation::write, 0, large, 1, 0), Status::ok);
  pair.settle();
  EXPECT_EQ(pair.a.ends[0].endpoint->natives_taken, 0);
  EXPECT_EQ(contexts(pair.a.seen), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(pair.b.region->deregister(), Status::ok);
}

TEST(Lending, ERR_5_a_region_goes_while_many_hold_it) {
  MessageSide::Options options = natively();
  options.endpoints = 5;
  MessagePair pair(options);
  pair.go_up();
  EXPECT_EQ(pair.b.region->deregister(), Status::again);
  pair.settle();
  EXPECT_EQ(pair.b.region->deregister(), Status::ok);
  EXPECT_EQ(pair.b.context.reachable, 0);
  for (const MessageEnd& end : pair.a.ends) {
    EXPECT_EQ(end.endpoint->borrowed.size(), 0U);
    EXPECT_EQ(end.events.failures, 0);
  }
}

wire::LendExtension extension_of(std::uint32_t length) {
  wire::LendExtension extension{};
  extension.length = length;
  return extension;
}

TEST(Lending, SEC_1_what_cannot_be_lent_recalled_or_returned_is_an_error) {
  const std::uint64_t some_region = 77;
  struct Case {
    const char* what;
    std::vector<std::byte> bytes;
  };
  const std::vector<Case> cases{
      {"a slot that is not imported", frames(slot_header(wire::Type::lend, 9, some_region), extension_of(8))},
      {"an empty key", frames(slot_header(wire::Type::lend, 0, some_region), extension_of(0))},
      {"a key that is too long", frames(slot_header(wire::Type::lend, 0, some_region), extension_of(65))},
      {"lent twice", frames(slot_header(wire::Type::lend, 0, some_region), extension_of(8))},
      {"a slot that is not imported, recalled", frames(slot_header(wire::Type::recall, 9, some_region))},
      {"a region that was not lent, returned", frames(slot_header(wire::Type::returned, 0, some_region))},
      {"no region, returned", frames(slot_header(wire::Type::returned, 0, 0))},
      {"a slot that was not bound, returned", frames(slot_header(wire::Type::returned, 9, some_region))},
      {"a slot where none belongs", frames(slot_header(wire::Type::natives, 1, 0))},
  };
  for (const Case& one : cases) {
    MessagePair pair(natively());
    pair.go_up();
    say(pair, one.bytes);
    EXPECT_EQ(pair.b.ends[0].events.failure, Status::protocol) << one.what;
  }
}

TEST(Lending, SEC_1_an_engine_without_native_writes_knows_no_loans) {
  for (const wire::Type type : {wire::Type::recall, wire::Type::returned}) {
    MessagePair pair;
    pair.go_up();
    say(pair, frames(slot_header(type, 0, 1)));
    EXPECT_EQ(pair.b.ends[0].events.failure, Status::protocol);
  }
  MessagePair pair;
  pair.go_up();
  say(pair, frames(slot_header(wire::Type::lend, 0, 1), extension_of(8)));
  EXPECT_EQ(pair.b.ends[0].events.failure, Status::protocol);
}

// What is not wanted is given back, and however often it is lent, what waits to be said is bounded.
TEST(Lending, SEC_1_lending_without_end_to_one_whose_words_do_not_leave_is_an_error) {
  MessagePair pair(natively());
  pair.go_up();
  pair.b.ends[0].endpoint->release_key(pair.b.ends[0].peer_memory.token);
  pair.settle();
  pair.b.ends[0].endpoint->refuses_messages = true;
  std::vector<std::byte> flood;
  for (int i = 0; i < 300; ++i) {
    const auto one = frames(slot_header(wire::Type::lend, 0, 5), extension_of(8));
    flood.insert(flood.end(), one.begin(), one.end());
  }
  int rounds = 0;
  for (; rounds < 1000 && pair.b.ends[0].events.failures == 0; ++rounds) say(pair, flood);
  EXPECT_EQ(pair.b.ends[0].events.failure, Status::protocol);
  EXPECT_GT(rounds, 10);
}

}  // namespace
}  // namespace weft::engine::test
