#include "harness/network.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

#include "harness/clock.hpp"
#include "harness/fork_server.hpp"
#include "harness/peer.hpp"

namespace conformance {
namespace {

// Nobody answers to it: frames for it are dropped by whoever gets them.
constexpr const char* lost_hardware_address = "02:00:00:00:00:77";

std::string in_words(const std::string& what) { return what + ": " + std::strerror(errno); }

// What is preloaded into the tests, a device made of software for instance, is not for the system's commands;
// a sanitizer would not even let them start.
class NothingPreloaded {
 public:
  NothingPreloaded() {
    if (const char* const value = std::getenv("LD_PRELOAD"); value != nullptr) value_ = value;
    unsetenv("LD_PRELOAD");
  }
  ~NothingPreloaded() {
    if (value_) setenv("LD_PRELOAD", value_->c_str(), 1);
  }
  NothingPreloaded(const NothingPreloaded&) = delete;
  NothingPreloaded& operator=(const NothingPreloaded&) = delete;

 private:
  std::optional<std::string> value_;
};

// Through a shell; what the command says is the text of the error.
void run(const std::string& command) {
  const NothingPreloaded meanwhile;
  // Where `ip` is, is not on everybody's path.
  const std::string whole = "PATH=\"$PATH:/usr/sbin:/sbin\"; { " + command + "; } 2>&1";
  FILE* pipe = popen(whole.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error(in_words("popen"));
  std::string output;
  std::array<char, 1024> piece{};
  while (fgets(piece.data(), piece.size(), pipe) != nullptr) output += piece.data();
  if (pclose(pipe) != 0) throw std::runtime_error("'" + command + "' failed: " + output);
}

// The same in the network of another process.
void run_at(pid_t process, const std::string& command) {
  run("nsenter --target " + std::to_string(process) + " --net -- sh -c '" + command + "'");
}

std::string addresses(const Wire::Addresses& own) {
  const std::string add = "ip address add ";
  const std::string at = " dev " + std::string(Wire::interface);
  return "ip link set " + std::string(Wire::interface) + " addrgenmode none && " + add + own.v4 + "/24" + at +
         " && " + add + own.v6 + "/64 nodad" + at + " && " + add + own.link + "/64 nodad" + at +
         " && ip link set " + Wire::interface + " up";
}

std::string losing(const std::string& address, bool lost) {
  const std::string at = address + " dev " + Wire::interface;
  return lost ? "ip neighbour replace " + at + " nud permanent lladdr " + lost_hardware_address
              : "ip neighbour del " + at;
}

// The kernel says a little later that a plugged-in wire carries; until then some libraries take the interface
// for none.
bool carries(const char* interface) {
  const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
  const bool known = any >= 0 && ioctl(any, SIOCGIFFLAGS, &request) == 0;
  if (any >= 0) close(any);
  return known && (request.ifr_flags & IFF_RUNNING) != 0;
}

void write_to(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw std::runtime_error(in_words(std::string("writing ") + path));
}

// As root there is nothing to ask for; anybody else gets the right to make networks with an identity that is
// root's in a namespace of this process.
void leave() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) == 0) return;
  if (errno != EPERM || unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) != 0) {
    throw std::runtime_error(in_words("this machine permits no network namespaces"));
  }
  write_to("/proc/self/setgroups", "deny");
  write_to("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
  write_to("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
}

void look_at_the_new_network() {
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    throw std::runtime_error(in_words("mount"));
  }
  // /sys shows the network in which it was mounted. Where another view is not permitted the old one stays.
  (void)mount("sysfs", "/sys", "sysfs", 0, nullptr);
  run("ip link set lo up");
}

// The user namespace of another process, when that is not this one's.
void join_user_of(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/ns/user";
  struct stat there {};
  struct stat here {};
  if (stat(path.c_str(), &there) != 0 || stat("/proc/self/ns/user", &here) != 0) {
    throw std::runtime_error(in_words(path));
  }
  if (there.st_ino == here.st_ino) return;
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 || setns(descriptor, CLONE_NEWUSER) != 0) throw std::runtime_error(in_words(path));
  close(descriptor);
}

}  // namespace

void enter_network_as_test() {
  reserve_processes(2);
  leave();
  look_at_the_new_network();
  run(std::string("ip link add ") + Wire::interface +
      " type veth peer name other && ip link set other up && " + addresses(Wire::test));
}

void enter_network_as_peer(pid_t test) {
  join_user_of(test);
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) throw std::runtime_error(in_words("unshare"));
  look_at_the_new_network();
  run_at(test, "ip link set other netns " + std::to_string(getpid()) + " name " + Wire::interface);
  run(addresses(Wire::peer));
  if (!eventually(10s, [] { return carries(Wire::interface); }))
    throw std::runtime_error("the wire between the networks does not carry");
}

void set_hosts(const std::string& text) {
  std::string path = "/tmp/weft-hosts-XXXXXX";
  const int descriptor = mkstemp(path.data());
  if (descriptor < 0) throw std::runtime_error(in_words(path));
  close(descriptor);
  write_to(path.c_str(), text);
  const int status = mount(path.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr);
  const std::string error = in_words("mount over /etc/hosts");
  unlink(path.c_str());
  if (status != 0) throw std::runtime_error(error);
}

std::string obstacle_to_networks() {
  try {
    enter_network_as_test();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

Wire::Wire(const Peer& peer) : peer_(peer.process()) {
  std::string error;
  const bool plugged_in = eventually(10s, [&] {
    if (!carries(interface)) return false;
    try {
      run_at(peer_, std::string("ip link show up dev ") + interface + " | grep -q " + interface);
      return true;
    } catch (const std::exception& not_yet) {
      error = not_yet.what();
      return false;
    }
  });
  if (!plugged_in) throw std::runtime_error("the peer did not plug in its end of the wire: " + error);
}

void Wire::set_mtu(unsigned bytes) const {
  const std::string command = std::string("ip link set ") + interface + " mtu " + std::to_string(bytes);
  run(command);
  run_at(peer_, command);
}

void Wire::set_up(bool test_side, bool up) const {
  const std::string command = std::string("ip link set ") + interface + (up ? " up" : " down");
  if (test_side) {
    run(command);
  } else {
    run_at(peer_, command);
  }
}

void Wire::lose_to_peer(bool lost) const { run(losing(peer.v4, lost)); }
void Wire::lose_to_test(bool lost) const { run_at(peer_, losing(test.v4, lost)); }
void Wire::make_nobody_silent() const {
  run(losing(nobody.v4, true));
  run(losing(nobody.v6, true));
}

}  // namespace conformance
