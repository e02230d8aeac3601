// Tests that go wrong on purpose, run as the suite runs its own: each must be found out, for its own reason.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "harness/run.hpp"
#include "harness/runner.hpp"
#include "harness/test.hpp"

namespace conformance {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr Traits cold_with_peer = from_cold.set(&Traits::thread_peer, true);

struct Told {
  std::vector<std::string> failures;
  std::uint64_t checks = 0;
};

// Runs one of the tests below as the runner does.
Told run(const std::string& name, PeerKind kind = PeerKind::process) {
  const auto& tests = all_tests();
  const auto found =
      std::find_if(tests.begin(), tests.end(), [&](const TestCase& t) { return t.name == name; });
  EXPECT_NE(found, tests.end()) << name;
  if (found == tests.end()) return {};
  Findings findings;
  const conformance::Test test(static_cast<std::size_t>(found - tests.begin()), Setting{}, kind, 1, false);
  run_isolated(test, findings);
  Told result;
  for (const Failure& failure : findings.failures()) result.failures.push_back(failure.text);
  result.checks = findings.checks();
  return result;
}

CONFORMANCE_TEST(SELF, 1, passes, from_cold) {
  CHECK(true);
  CHECK_EQ(1, 1U);
  CHECK_LT(-1, 1U);
}

TEST(Findings, a_good_test_passes_and_its_checks_are_counted) {
  const Told result = run("SELF_1_passes");
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_EQ(result.checks, 3U);
}

CONFORMANCE_TEST(SELF, 1, checks_in_a_loop, from_cold) {
  for (int i = 0; i < 10; ++i) CHECK_GE(i, 0);
}

TEST(Findings, a_check_counts_once_however_often_it_is_reached) {
  EXPECT_EQ(run("SELF_1_checks_in_a_loop").checks, 1U);
}

CONFORMANCE_TEST(SELF, 1, goes_on_after_a_check, from_cold) {
  CHECK_EQ(1, 2) << "first";
  CHECK(false) << "second";
}

CONFORMANCE_TEST(SELF, 1, stops_after_a_requirement, from_cold) {
  REQUIRE_EQ(1, 2) << "first";
  CHECK(false) << "second";
}

TEST(Findings, a_check_goes_on_and_a_requirement_stops) {
  EXPECT_THAT(run("SELF_1_goes_on_after_a_check").failures, SizeIs(2));
  const Told result = run("SELF_1_stops_after_a_requirement");
  ASSERT_THAT(result.failures, SizeIs(1));
  EXPECT_THAT(result.failures[0], HasSubstr("first"));
}

CONFORMANCE_TEST(SELF, 1, crashes, from_cold) { raise(SIGSEGV); }
CONFORMANCE_TEST(SELF, 1, exits, from_cold) { std::_Exit(3); }

TEST(Findings, a_crash_is_a_failure_that_names_the_signal) {
  EXPECT_THAT(run("SELF_1_crashes").failures, Contains(HasSubstr("ended by signal 11")));
  EXPECT_THAT(run("SELF_1_exits").failures, Contains(HasSubstr("exited with status 3")));
}

CONFORMANCE_TEST(SELF, 1, hangs, from_cold.within(500ms)) {
  while (true) pause(1s);
}

TEST(Findings, a_hang_is_ended_and_told) {
  EXPECT_THAT(run("SELF_1_hangs").failures, Contains(HasSubstr("still running")));
}

CONFORMANCE_TEST(SELF, 1, throws, from_cold) { throw weft::Error(weft::Status::busy, "no way"); }

TEST(Findings, an_error_that_was_not_expected_is_a_failure) {
  EXPECT_THAT(run("SELF_1_throws").failures, Contains(HasSubstr("no way")));
}

CONFORMANCE_TEST(SELF, 1, leaves_a_descriptor, from_cold) {
  check_nothing_is_left_by([] { (void)open("/dev/null", O_RDONLY | O_CLOEXEC); });
}
CONFORMANCE_TEST(SELF, 1, leaves_a_thread, from_cold) {
  check_nothing_is_left_by([] { std::thread([] { pause(60s); }).detach(); });
}

TEST(Findings, what_is_left_behind_is_found) {
  EXPECT_THAT(run("SELF_1_leaves_a_descriptor").failures, Contains(HasSubstr("descriptors left behind")));
  EXPECT_THAT(run("SELF_1_leaves_a_thread").failures, Contains(HasSubstr("threads left behind")));
}

CONFORMANCE_TEST(SELF, 1, overruns_a_buffer, from_cold) {
  const GuardedBuffer buffer(100);
  auto* volatile data = buffer.data();
  data[100] = std::byte{1};
}
CONFORMANCE_TEST(SELF, 1, underruns_a_buffer, from_cold) {
  const GuardedBuffer buffer(100);
  auto* volatile data = buffer.data();
  data[-1] = std::byte{1};
}

TEST(Findings, bytes_outside_of_a_buffer_are_found) {
  EXPECT_THAT(run("SELF_1_overruns_a_buffer").failures, Contains(HasSubstr("ended by signal")));
  EXPECT_THAT(run("SELF_1_underruns_a_buffer").failures, Contains(HasSubstr("before the first byte")));
}

void fails_as_a_peer(conformance::Test&, Channel& control) {
  CHECK_EQ(control.receive_value<int>(), 7);
  CHECK(false) << "the peer says";
  control.barrier();
}

CONFORMANCE_TEST(SELF, 1, has_a_peer_that_fails, cold_with_peer) {
  Peer peer = test.start_peer(fails_as_a_peer);
  peer.control().send_value(7);
  peer.control().barrier();
  peer.finish();
  CHECK(true);
}

TEST(Findings, what_a_peer_finds_reaches_the_test) {
  for (const PeerKind kind : {PeerKind::process, PeerKind::thread}) {
    const Told result = run("SELF_1_has_a_peer_that_fails", kind);
    EXPECT_THAT(result.failures, Contains(HasSubstr("the peer says")));
    EXPECT_THAT(result.failures, SizeIs(1));
    EXPECT_EQ(result.checks, 3U) << "what the harness checks for itself does not count";
  }
}

CONFORMANCE_TEST(SELF, 1, has_a_peer_that_crashes, cold_with_peer) {
  Peer peer = test.start_process_peer([](conformance::Test&, Channel&) { raise(SIGSEGV); });
  peer.finish();
  CHECK(true);
}

CONFORMANCE_TEST(SELF, 1, waits_for_a_peer_that_ends_early, cold_with_peer) {
  Peer peer = test.start_peer([](conformance::Test&, Channel&) {});
  peer.control().barrier(3s);
}

CONFORMANCE_TEST(SELF, 1, forgets_its_peer, cold_with_peer) {
  Peer peer = test.start_peer([](conformance::Test&, Channel& control) { control.barrier(10s); });
  CHECK(true);
}

TEST(Findings, peers_that_end_wrongly_are_found) {
  EXPECT_THAT(run("SELF_1_has_a_peer_that_crashes").failures,
              Contains(HasSubstr("the peer process ended by signal 11")));
  EXPECT_THAT(run("SELF_1_waits_for_a_peer_that_ends_early").failures, Not(IsEmpty()));
  EXPECT_THAT(run("SELF_1_waits_for_a_peer_that_ends_early", PeerKind::thread).failures, Not(IsEmpty()));
  EXPECT_THAT(run("SELF_1_forgets_its_peer").failures, Contains(HasSubstr("without waiting for its peer")));
}

CONFORMANCE_TEST(SELF, 1, kills_its_peer, cold_with_peer) {
  Peer peer = test.start_process_peer([](conformance::Test&, Channel& control) { control.barrier(60s); });
  peer.stop();
  peer.kill();
  peer.finish();
  CHECK(true);
}

TEST(Findings, a_peer_may_be_stopped_and_killed) {
  EXPECT_THAT(run("SELF_1_kills_its_peer").failures, IsEmpty());
}

}  // namespace
}  // namespace conformance
