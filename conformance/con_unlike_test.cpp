// CON-6, CON-8: a listener without descriptors, and sides that do not fit.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "harness/victim.hpp"

namespace conformance {
namespace {

using weft::Completion;
using weft::Operation;
using weft::Status;

// Takes every descriptor that this process may have, until it is destroyed.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    REQUIRE_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit lowered{std::min<rlim_t>(before_.rlim_max, 256), before_.rlim_max};
    REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &lowered), 0);
    for (int copy = fcntl(0, F_DUPFD_CLOEXEC, 0); copy >= 0; copy = fcntl(0, F_DUPFD_CLOEXEC, 0)) {
      taken_.push_back(copy);
    }
  }
  ~NoDescriptorsLeft() {
    for (const int copy : taken_) close(copy);
    (void)setrlimit(RLIMIT_NOFILE, &before_);
  }
  NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
  NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

void listens_without_descriptors(Test& test, Channel& control) {
  Side side = accept_side(test, control);
  const GuardedBuffer buffer(64);
  weft::MemoryRegion region = side.region(buffer);
  const auto echo = [&] {
    REQUIRE_EQ(side.endpoint.receive(region.whole(), 1), Status::ok);
    CHECK_EQ(side.completions.next_of(Operation::receive).status, Status::ok);
    REQUIRE_EQ(side.endpoint.send(region.whole(), 2), Status::ok);
    CHECK_EQ(side.completions.next_of(Operation::send).status, Status::ok);
  };
  control.send(side.listener.address());
  echo();
  {
    const NoDescriptorsLeft nothing;
    control.barrier();
    control.barrier(60s);
    echo();
  }
  while (side.listener.next().has_value()) {
  }
  control.barrier();
  const Deadline deadline(patience);
  weft::Endpoint newcomer;
  while (!newcomer && !deadline.passed()) {
    side.completions.collect();
    weft::EndpointOptions options;
    options.queue = side.completions.queue();
    if (auto request = side.listener.next()) newcomer = request->accept(options);
    pause(1ms);
  }
  CHECK_EQ(side.completions.next_of(Operation::connect, newcomer).status, Status::ok);
  control.barrier();
}

CONFORMANCE_TEST(CON, 6, a_listener_without_descriptors_refuses_newcomers_and_keeps_the_others,
                 with_process) {
  Peer peer = test.start_process_peer(listens_without_descriptors);
  Side side = connect_side(test, peer.control());
  const std::string address = peer.control().receive();
  const GuardedBuffer buffer(64);
  weft::MemoryRegion region = side.region(buffer);
  const auto check_echo = [&](std::uint64_t seed) {
    buffer.fill(seed);
    REQUIRE_EQ(side.endpoint.receive(region.slice(0, 64), 1), Status::ok);
    REQUIRE_EQ(post_soon([&] { return side.endpoint.send(region.whole(), 2); }), Status::ok);
    CHECK_EQ(side.completions.next_of(Operation::receive).status, Status::ok);
    CHECK_EQ(side.completions.next_of(Operation::send).status, Status::ok);
    CHECK_EQ(buffer.difference(seed), "");
  };
  check_echo(test.seed());
  peer.control().barrier();
  weft::EndpointOptions options;
  options.queue = side.completions.queue();
  for (int i = 0; i < 3; ++i) {
    const Stopwatch watch;
    const weft::Endpoint newcomer = side.context.connect(address, options);
    const Completion outcome = side.completions.next_of(Operation::connect, newcomer);
    CHECK_LE(watch.without_stalls(), 3s) << "refused explicitly, not left to the deadline";
    CHECK(outcome.status == Status::resource_limit || outcome.status == Status::refused)
        << weft::to_string(outcome.status) << ": " << newcomer.describe_end();
  }
  peer.control().barrier();
  check_echo(test.seed() + 1);
  CHECK_EQ(side.endpoint.state(), weft::EndpointState::up);
  peer.control().barrier();
  const weft::Endpoint newcomer = side.context.connect(address, options);
  CHECK_EQ(side.completions.next_of(Operation::connect, newcomer).status, Status::ok)
      << newcomer.describe_end();
  peer.control().barrier();
  peer.finish();
}

std::string innermost(const std::string& provider) { return provider.substr(provider.rfind('+') + 1); }

// What the listener answers to a dialer with this introduction.
std::string refusal_of(Victim& victim, const Introduction& introduction) {
  WrongPeer peer = victim.peer();
  peer.introduction = introduction;
  peer.greet();
  const auto heard = WrongPeer::hear(peer.main);
  REQUIRE(heard.has_value()) << "no answer";
  CHECK(heard->type == Said::refuse);
  REQUIRE_GE(heard->payload.size(), 3U);
  CHECK_EQ(static_cast<Status>(heard->payload[0]), Status::incompatible);
  return heard->payload.substr(3);
}

CONFORMANCE_TEST(CON, 8, unlike_sides_are_told_who_they_are_and_what_both_have, alone) {
  Victim victim(test);
  const std::string own = innermost(victim.loop.context.attributes().provider);
  Introduction unlike = victim.introduction;
  unlike.provider = "elsewhere";
  unlike.version = "7.7.7";
  unlike.available = {"elsewhere", own, "nowhere"};
  const std::string text = refusal_of(victim, unlike);
  for (const std::string& name : {std::string("elsewhere"), own}) {
    CHECK(text.find(name) != std::string::npos) << name << " is not in: " << text;
  }
  CHECK(text.find(own) != text.rfind(own)) << "both have " << own << ", which is not said: " << text;
  CHECK_EQ(text.find("nowhere"), std::string::npos) << "only one side has it: " << text;

  // The same provider, but no version of its protocol in common.
  Introduction later = victim.introduction;
  later.lowest = later.highest = static_cast<std::uint16_t>(victim.introduction.highest + 1000);
  const std::string versions = refusal_of(victim, later);
  for (const std::uint16_t version : {later.lowest, victim.introduction.highest}) {
    CHECK(versions.find(std::to_string(version)) != std::string::npos)
        << version << " is not in: " << versions;
  }
  victim.check_unharmed("unlike peers");
}

CONFORMANCE_TEST(CON, 8, what_a_listener_says_reaches_the_dialing_program, alone) {
  weft::Context context = test.open_context();
  Completions completions(context.create_completion_queue());
  weft::EndpointOptions options;
  options.queue = completions.queue();
  const RawSocket listener = RawSocket::listening();
  const weft::Endpoint endpoint = context.connect("127.0.0.1:" + std::to_string(listener.port()), options);
  const RawSocket peer = listener.accepted();
  REQUIRE(peer.is_open());
  (void)peer.receive(2s, 20);  // it begins to speak
  const std::string text = "this side uses elsewhere 7.7.7, the other one " + test.setting().provider;
  (void)peer.send(
      frame(Said::refuse, Saying().put(static_cast<std::uint8_t>(Status::incompatible)).text(text).bytes()));
  CHECK_EQ(completions.next_of(Operation::connect, endpoint).status, Status::incompatible);
  CHECK(endpoint.describe_end().find(text) != std::string::npos) << endpoint.describe_end();
}

}  // namespace
}  // namespace conformance
