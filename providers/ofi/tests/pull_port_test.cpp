// The port that fetches payload, from one of its kind in the same process: how many reads are under way, and
// whether each fetch is told of once and whole.
#include "pull_port.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace weft::ofi {
namespace {

using Submitted = PullPort::Submitted;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t mib = std::size_t{1} << 20;

[[nodiscard]] std::vector<std::byte> loopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto bytes = std::as_bytes(std::span(&address, 1));
  return {bytes.begin(), bytes.end()};
}

struct Heard final : PullEvents {
  struct End {
    std::uint64_t number;
    std::uint64_t length;
  };
  void on_fetched(std::uint64_t number, std::uint64_t length) noexcept override {
    ends.push_back({number, length});
  }
  void on_fetch_failed(std::int32_t code) noexcept override { failure = code; }
  std::vector<End> ends;
  std::int32_t failure = 0;
};

// One port that fetches from another, both moved on by the test.
class PullPorts : public testing::Test {
 protected:
  PullPorts() {
    fetching.set_events(heard);
    offering.set_events(unused);
  }
  [[nodiscard]] std::vector<std::byte> offer(std::vector<std::byte>& memory) {
    std::vector<std::byte> token(engine::wire::max_token);
    token.resize(offering.offer({memory.data(), memory.size(), 0}, token));
    return token;
  }
  void connect_to(const std::vector<std::byte>& token) {
    fetching.connect(PullPort::address_in(token).value().as_socket_address(true, 0));
  }
  // The first makes the way.
  [[nodiscard]] Submitted fetch(std::uint64_t number, const std::vector<std::byte>& token, std::byte* to,
                                std::uint64_t length) {
    const auto deadline = Clock::now() + 10s;
    for (;;) {
      const Submitted how = fetching.fetch(number, token, 0, to, length, native_code);
      if (how != Submitted::no_room || Clock::now() > deadline) return how;
      static_cast<void>(fetching.progress());
      static_cast<void>(offering.progress());
    }
  }
  template <class Done>
  void run_until(const Done& done) {
    const auto deadline = Clock::now() + 20s;
    while (!done() && heard.failure == 0 && Clock::now() < deadline) {
      static_cast<void>(fetching.progress());
      static_cast<void>(offering.progress());
    }
    EXPECT_EQ(heard.failure, 0);
    ASSERT_TRUE(done());
  }
  [[nodiscard]] static std::vector<std::byte> pattern(std::size_t length) {
    std::vector<std::byte> bytes(length);
    std::uint32_t value = 1;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>((value = value * 1664525 + 1013904223) >> 24);
    return bytes;
  }

  Device device{*find_fabric("tcp"), loopback(), {}};
  PullPort fetching{device, 1000};
  PullPort offering{device, 2000};
  Heard heard;
  Heard unused;
  std::int32_t native_code = 0;
};

TEST_F(PullPorts, never_more_than_16_reads_at_once_and_each_byte_once) {
  std::vector<std::byte> source = pattern(20 * mib + 123);
  std::vector<std::byte> target(source.size());
  const std::vector<std::byte> token = offer(source);
  connect_to(token);
  ASSERT_EQ(fetch(0, token, target.data(), target.size()), Submitted::under_way);
  EXPECT_EQ(fetching.reads_under_way(), 16);
  int most = 0;
  run_until([&] {
    most = std::max(most, fetching.reads_under_way());
    return !heard.ends.empty();
  });
  EXPECT_EQ(most, 16);
  EXPECT_EQ(fetching.reads_under_way(), 0);
  ASSERT_EQ(heard.ends.size(), 1U);
  EXPECT_EQ(heard.ends[0].length, source.size());
  EXPECT_EQ(target, source);
  EXPECT_FALSE(fetching.is_busy());
}

// Each of several reads, so that some wait for those of others, and numbers that go round.
TEST_F(PullPorts, each_of_16_fetches_at_once_is_told_of_once_and_whole) {
  std::vector<std::byte> source = pattern(2 * mib + 4567);
  const std::vector<std::byte> token = offer(source);
  connect_to(token);
  constexpr std::uint64_t at_once = 16;
  std::vector<std::vector<std::byte>> targets(at_once, std::vector<std::byte>(source.size()));
  for (std::uint64_t first : {std::uint64_t{0}, at_once, 2 * at_once + 5}) {
    heard.ends.clear();
    for (auto& target : targets) std::fill(target.begin(), target.end(), std::byte{});
    for (std::uint64_t i = 0; i < at_once; ++i) {
      std::vector<std::byte>& target = targets[(first + i) % at_once];
      ASSERT_EQ(fetch(first + i, token, target.data(), source.size() - i), Submitted::under_way);
      EXPECT_LE(fetching.reads_under_way(), 16);
    }
    run_until([&] { return heard.ends.size() == at_once; });
    std::vector<bool> seen(at_once);
    for (const Heard::End& end : heard.ends) {
      ASSERT_LT(end.number - first, at_once);
      EXPECT_FALSE(seen[end.number - first]);
      seen[end.number - first] = true;
      const std::uint64_t length = source.size() - (end.number - first);
      EXPECT_EQ(end.length, length);
      const std::vector<std::byte>& target = targets[end.number % at_once];
      EXPECT_TRUE(
          std::equal(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(length), source.begin()));
    }
    EXPECT_EQ(fetching.reads_under_way(), 0);
  }
}

}  // namespace
}  // namespace weft::ofi
