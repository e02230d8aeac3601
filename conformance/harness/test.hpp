// A test: written once, run for every provider and fabric in every thread mode asked for.
//
//   CONFORMANCE_TEST(OPS, 3, send_waits_for_its_receive, with_peer) {
//     Peer peer = test.start_peer(receiver);
//     …
//   }
//
// is OPS_3_send_waits_for_its_receive and pins rule OPS-3. Each runs in a process of its own; when it is
// over, descriptors and threads must be as before.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/buffer.hpp"
#include "harness/channel.hpp"
#include "harness/check.hpp"
#include "harness/clock.hpp"
#include "harness/peer.hpp"
#include "weft/weft.hpp"

namespace conformance {

class Test;

// In which runs a test takes part.
enum class Cost : std::uint8_t {
  quick,    // in every run
  full,     // not with --quick
  long_run  // with --long only
};

struct Traits {
  Cost cost = Cost::quick;
  bool process_peer = true;  // the name as it is: peers are processes
  bool thread_peer = false;  // the name with _threads: peers are threads
  bool network = false;      // the test and its peer are in networks of their own, see network.hpp
  bool cold = false;         // no context is opened before the test, and nothing is counted
  Duration limit = 30s;      // when it takes longer than this it hangs

  [[nodiscard]] constexpr Traits full() const { return with(&Traits::cost, Cost::full); }
  [[nodiscard]] constexpr Traits long_run() const { return with(&Traits::cost, Cost::long_run); }
  [[nodiscard]] constexpr Traits within(Duration time) const { return with(&Traits::limit, time); }

 private:
  template <class T>
  [[nodiscard]] constexpr Traits with(T Traits::*member, T value) const {
    Traits copy = *this;
    copy.*member = value;
    return copy;
  }

 public:
  [[nodiscard]] constexpr Traits set(bool Traits::*member, bool value) const { return with(member, value); }
};

inline constexpr Traits alone{};                                               // one process is enough
inline constexpr Traits with_process{};                                        // a peer that is a process
inline constexpr Traits with_peer = Traits{}.set(&Traits::thread_peer, true);  // either
inline constexpr Traits over_a_wire = Traits{}.set(&Traits::network, true);    // a peer in another network
inline constexpr Traits from_cold = Traits{}.set(&Traits::cold, true);

struct TestCase {
  std::string rule;  // "OPS-3"
  std::string name;  // "OPS_3_send_waits_for_its_receive"
  const char* file = "";
  int line = 0;
  void (*body)(Test&) = nullptr;
  Traits traits;
};

// In order of registration, the same in every process.
[[nodiscard]] std::vector<TestCase>& all_tests();
bool add_test(TestCase test);

// What moving bytes costs on a fabric. A test that goes round many times does so as often as it can afford
// there.
enum class FabricClass : std::uint8_t {
  native,         // a network, or sockets
  shared_memory,  // copies within one machine
  emulated        // in a guest whose processor is a program
};
[[nodiscard]] const char* to_text(FabricClass fabric_class);
[[nodiscard]] FabricClass class_of(const std::string& provider, const std::string& fabric);

// On what a test runs.
struct Setting {
  std::string provider;  // "tcp"
  std::string fabric;    // what follows the colon; may be empty
  weft::ThreadMode threads = weft::ThreadMode::safe;
  FabricClass fabric_class = FabricClass::native;

  [[nodiscard]] std::string selector() const { return fabric.empty() ? provider : provider + ':' + fabric; }
  [[nodiscard]] std::string text() const;  // "tcp/safe"
};

// What a running test knows, in its own process and in each peer's.
class Test {
 public:
  Test(std::size_t index, Setting setting, PeerKind kind, std::uint64_t seed, bool long_run)
      : index_(index), setting_(std::move(setting)), kind_(kind), seed_(seed), long_run_(long_run) {}

  [[nodiscard]] const TestCase& about() const { return all_tests()[index_]; }
  [[nodiscard]] const Setting& setting() const { return setting_; }
  [[nodiscard]] bool long_run() const { return long_run_; }
  // How often to go round, of `wanted` times, when each moves so many bytes; the same in a peer.
  [[nodiscard]] std::uint64_t rounds(std::uint64_t wanted, std::uint64_t bytes_each) const;
  [[nodiscard]] std::uint64_t seed() const { return seed_; }

  // `peer_timeout` 0: the default.
  [[nodiscard]] weft::ContextOptions context_options(std::chrono::milliseconds peer_timeout = 0ms) const;
  [[nodiscard]] weft::Context open_context(std::chrono::milliseconds peer_timeout = 0ms) const {
    return weft::Context::open(context_options(peer_timeout));
  }
  // The kind of peer this run asks for; or a process in any case, to be killed or stopped.
  [[nodiscard]] Peer start_peer(PeerBody body) const { return {*this, body, kind_}; }
  [[nodiscard]] Peer start_process_peer(PeerBody body) const { return {*this, body, PeerKind::process}; }

  // ---- for the harness: a test on its way to another process
  [[nodiscard]] std::string packed() const;
  [[nodiscard]] static Test unpacked(const std::string& packed);

 private:
  std::size_t index_;
  Setting setting_;
  PeerKind kind_;
  std::uint64_t seed_;
  bool long_run_;
};

}  // namespace conformance

#define CONFORMANCE_TEST(section, number, what, traits_value)                 \
  static void section##_##number##_##what(::conformance::Test& test);         \
  [[maybe_unused]] static const bool section##_##number##_##what##_is_known = \
      ::conformance::add_test({.rule = #section "-" #number,                  \
                               .name = #section "_" #number "_" #what,        \
                               .file = __FILE__,                              \
                               .line = __LINE__,                              \
                               .body = section##_##number##_##what,           \
                               .traits = traits_value});                      \
  static void section##_##number##_##what([[maybe_unused]] ::conformance::Test& test)
