// Two networks with a wire between them, for tests whose peer is somewhere else: the test's process and its
// peer's each live in a network namespace of their own, with addresses of their own on the interface `weft0`.
// The wire can be cut, loudly or silently, and has the MTU a test gives it. Nothing of the machine's own
// network changes, and all of it is gone when the two processes are.
//
// A test asks for it with the trait over_a_wire, and has `over_a_wire` in its name, so that a machine that
// permits no network namespaces can leave all of them out at once.
#pragma once

#include <sys/types.h>

#include <string>

namespace conformance {

class Peer;

// Why this machine does not permit such tests; empty when it does. Call it in a process of its own.
[[nodiscard]] std::string obstacle_to_networks();

// The calling process leaves the machine's network for an empty one: the test's process first, with one end
// of the wire; then its peer's, which takes the other end. Only while it has one thread.
void enter_network_as_test();
void enter_network_as_peer(pid_t test);
// What /etc/hosts says to this process from now on; nobody else sees it.
void set_hosts(const std::string& text);

// The wire, as the test's process sees it.
class Wire {
 public:
  static constexpr const char* interface = "weft0";  // on both sides
  // Addresses of the test and of its peer; the last of each is on the link only and needs a scope.
  struct Addresses {
    const char* v4;
    const char* v6;
    const char* link;
  };
  static constexpr Addresses test{"198.18.77.1", "fd77::1", "fe80::77:1"};
  static constexpr Addresses peer{"198.18.77.2", "fd77::2", "fe80::77:2"};
  // In the same network, but nobody's: what is sent there vanishes without a word.
  static constexpr Addresses nobody{"198.18.77.99", "fd77::99", "fe80::77:99"};

  // Waits until the peer has its end.
  explicit Wire(const Peer& peer);

  void set_mtu(unsigned bytes) const;
  // Unplugged at one end: that side sees its interface go down, the other one its carrier.
  void set_up(bool test_side, bool up) const;
  // What goes that way over IPv4 is lost without a word, while both sides see a working interface.
  void lose_to_peer(bool lost) const;
  void lose_to_test(bool lost) const;
  // Without this the kernel finds out after a while that nobody has those addresses, and says so.
  void make_nobody_silent() const;

 private:
  const pid_t peer_;
};

}  // namespace conformance
