// Writes past the engine's stream, over UCX's TCP in place of an adapter: UCX carries them out at the target
// by its own code, so that order, ends and loans are put to the test wherever there is no device.
#include <gtest/gtest.h>

#include <cstring>

#include "sides.hpp"

namespace weft::ucx {
namespace {

constexpr auto everything = weft::Access::local_write | weft::Access::remote_read |
                            weft::Access::remote_write | weft::Access::remote_atomic;
constexpr std::size_t size = 1'000'000;

// Two sides with an endpoint and memory each, up; far's memory is lent to near.
struct Two {
  Two() : near(WireUp::listener, 10s, true), far(WireUp::listener, 10s, true), a(near), b(far) {
    near_region =
        near.context.register_memory({.address = near_memory.data(), .length = size, .access = everything});
    far_region =
        far.context.register_memory({.address = far_memory.data(), .length = size, .access = everything});
    EXPECT_TRUE(b.establish(a, true));
    a.establish(b, false);
    EXPECT_TRUE(eventually({&near, &far}, [&] { return a.events.is_established; }));
    a.endpoint->go_up();
    b.endpoint->go_up();
    memory = a.endpoint->import_key(far_region->key());
  }
  [[nodiscard]] std::uint64_t written() {
    return static_cast<UcxEndpoint&>(*a.endpoint).native_way()->sent();
  }
  Status post(Operation operation, std::uint64_t length, std::uint64_t context, std::uint64_t offset = 0) {
    const Segment place{near_region->token(), 0, length};
    WorkRequest request;
    request.operation = operation;
    if (operation != Operation::flush) request.segments = std::span(&place, 1);
    request.remote = {memory.token, offset};
    request.context = context;
    return a.endpoint->post(&request, 1).status;
  }
  // Polls both until near has the completion.
  Status complete(std::uint64_t context) {
    for (const auto end = Clock::now() + 20s; Clock::now() < end;) {
      static_cast<void>(far.poll());
      for (const Completion& entry : near.poll()) {
        if (entry.operation != Operation::connect && entry.context == context) return entry.status;
      }
    }
    return Status::timed_out;
  }
  // The connection for writes stands.
  bool writes_natively() {
    for (std::uint64_t i = 0; i < 1000; ++i) {
      if (post(Operation::write, 5000, 1000 + i) != Status::ok || complete(1000 + i) != Status::ok)
        return false;
      if (written() != 0) return true;
    }
    return false;
  }

  Side near;
  Side far;
  std::vector<std::byte> near_memory = std::vector<std::byte>(size);
  std::vector<std::byte> far_memory = std::vector<std::byte>(size);
  std::unique_ptr<provider::MemoryRegion> near_region;
  std::unique_ptr<provider::MemoryRegion> far_region;
  End a;
  End b;
  provider::Endpoint::Imported memory;
};

TEST(Native, CMP_3_writes_are_at_the_target_when_they_complete) {
  Two two;
  ASSERT_TRUE(two.writes_natively());
  const std::uint64_t before = two.written();
  for (unsigned round = 1; round < 50; ++round) {
    std::memset(two.near_memory.data(), static_cast<int>(round), size);
    const std::uint64_t length = 5000 + round * 10'000;
    ASSERT_EQ(two.post(Operation::write, length, round, round), Status::ok);
    ASSERT_EQ(two.complete(round), Status::ok);
    ASSERT_EQ(std::memcmp(two.far_memory.data() + round, two.near_memory.data(), length), 0) << round;
  }
  EXPECT_GT(two.written(), before + 10'000'000);
}

TEST(Native, ORD_2_a_message_finds_the_writes_before_it) {
  Two two;
  ASSERT_TRUE(two.writes_natively());
  for (unsigned round = 1; round < 100; ++round) {
    std::memset(two.near_memory.data(), static_cast<int>(round), size);
    const ReceiveRequest receive{round, {}};
    ASSERT_EQ(two.b.endpoint->post_receives(&receive, 1).status, Status::ok);
    ASSERT_EQ(two.post(Operation::write, 100'000, 1), Status::ok);
    ASSERT_EQ(two.post(Operation::write, 4096, 2, 500'000), Status::ok);
    ASSERT_EQ(two.post(Operation::send, 0, 3), Status::ok);
    bool received = false;
    for (const auto end = Clock::now() + 20s; !received && Clock::now() < end;) {
      static_cast<void>(two.near.poll());
      for (const Completion& entry : two.far.poll())
        received = received || entry.operation == Operation::receive;
    }
    ASSERT_TRUE(received) << round;
    ASSERT_EQ(two.far_memory[99'999], static_cast<std::byte>(round));
    ASSERT_EQ(two.far_memory[504'095], static_cast<std::byte>(round));
  }
}

TEST(Native, MEM_5_a_region_comes_back_and_then_the_engine_refuses) {
  Two two;
  ASSERT_TRUE(two.writes_natively());
  Status status = Status::again;
  EXPECT_TRUE(eventually({&two.near, &two.far}, [&] {
    if (status == Status::again) status = two.far_region->deregister();
    return status == Status::ok;
  }));
  EXPECT_EQ(two.a.events.failure, Status::ok);
  std::memset(two.near_memory.data(), 0x77, size);
  ASSERT_EQ(two.post(Operation::write, 100'000, 1), Status::ok);
  EXPECT_TRUE(
      eventually({&two.near, &two.far}, [&] { return two.b.events.failure == Status::remote_access_error; }));
  EXPECT_NE(two.far_memory[99'999], std::byte{0x77});
}

TEST(Native, MEM_5_a_peer_that_stays_away_is_cut_off_and_goes_on_through_the_engine) {
  Two two;
  ASSERT_TRUE(two.writes_natively());
  Status status = Status::again;
  const auto start = Clock::now();
  while (status == Status::again && Clock::now() - start < 5s) {
    static_cast<void>(two.far.poll());
    status = two.far_region->deregister();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(status, Status::ok);
  EXPECT_LT(Clock::now() - start, 1s);
  auto other = two.far.context.register_memory(
      {.address = two.far_memory.data(), .length = size, .access = everything});
  two.memory = two.a.endpoint->import_key(other->key());
  std::memset(two.near_memory.data(), 0x66, size);
  ASSERT_EQ(two.post(Operation::write, 100'000, 1), Status::ok);
  EXPECT_EQ(two.complete(1), Status::ok);
  EXPECT_EQ(two.far_memory[99'999], std::byte{0x66});
}

TEST(Native, ERR_2_endpoints_beside_one_that_ends_in_the_middle_live_on) {
  Two two;
  End other_near(two.near);
  End other_far(two.far);
  ASSERT_TRUE(other_far.establish(other_near, true));
  other_near.establish(other_far, false);
  ASSERT_TRUE(eventually({&two.near, &two.far}, [&] { return other_near.events.is_established; }));
  other_near.endpoint->go_up();
  other_far.endpoint->go_up();
  const auto other_memory = other_near.endpoint->import_key(two.far_region->key());
  ASSERT_TRUE(two.writes_natively());
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(two.post(Operation::write, size, i), Status::ok);
  provider::EndOrder order;
  order.cause = Status::aborted;
  two.a.endpoint->end(order);
  two.b.endpoint->end(order);
  std::memset(two.near_memory.data(), 0x55, size);
  const Segment place{two.near_region->token(), 0, 100'000};
  WorkRequest request;
  request.operation = Operation::write;
  request.segments = std::span(&place, 1);
  request.remote = {other_memory.token, 0};
  request.context = 77;
  ASSERT_EQ(other_near.endpoint->post(&request, 1).status, Status::ok);
  EXPECT_EQ(two.complete(77), Status::ok);
  EXPECT_EQ(two.far_memory[99'999], std::byte{0x55});
  EXPECT_EQ(other_near.events.failure, Status::ok);
}

// A device's key: domains, the memory's type, and the length and bytes of each part.
TEST(NativeKeys, SEC_1_what_UCX_would_read_past_is_refused) {
  std::vector<std::byte> packed(8 + 1 + 1 + 8);
  packed[0] = std::byte{1};
  packed[9] = std::byte{8};
  NativeKey key;
  key.address = 0x1234;
  key.port = 7;
  key.key = packed;
  std::array<std::byte, 64> room{};
  const std::size_t length = key.encode(room);
  ASSERT_EQ(length, NativeKey::head + packed.size());
  const auto decoded = NativeKey::decode(std::span(room).first(length), true);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->address, 0x1234U);
  EXPECT_EQ(decoded->port, 7);
  EXPECT_EQ(decoded->key.size(), packed.size());
  for (std::size_t shorter = 0; shorter < length; ++shorter)
    EXPECT_FALSE(NativeKey::decode(std::span(room).first(shorter), true)) << shorter;
  EXPECT_FALSE(NativeKey::decode(std::span(room).first(length + 1), true));
  const auto refused = [&](std::size_t at, std::uint8_t value) {
    auto bytes = room;
    bytes[NativeKey::head + at] = static_cast<std::byte>(value);
    return !NativeKey::decode(std::span(bytes).first(length), true);
  };
  EXPECT_TRUE(refused(0, 0)) << "no device";
  EXPECT_TRUE(refused(0, 3)) << "two, and bytes of one";
  EXPECT_TRUE(refused(8, 1)) << "not the host's memory";
  EXPECT_TRUE(refused(9, 7)) << "too short for UCX";
  EXPECT_TRUE(refused(9, 255));
  std::array<std::byte, 8> small{};
  EXPECT_EQ(key.encode(small), 0U);
}

}  // namespace
}  // namespace weft::ucx
