// weft-verbs-wires: two hosts, the data of weft's verbs provider on one wire, its control connection on
// another, and what becomes of a connection when either is cut, comes back or loses frames. Run in both
// guests at once:
//   conformance/softroce/softroce run --hosts 2 -- build/release/bin/weft-verbs-wires
// Only one wire is treated at a time. Endpoints must end where they have to, in time and with the same cause
// on both sides, and not otherwise; what was received is what was sent, in order.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/weft.hpp"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using weft::Operation;
using weft::Status;

constexpr auto peer_timeout = 6s;
constexpr auto slack = 3s;  // an emulated processor is slow
constexpr std::size_t message_size = 4096;
constexpr std::uint32_t depth = 32;

void must(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

const char* variable(const char* name) {
  const char* const value = std::getenv(name);
  must(value != nullptr, std::string(name) + " is not set: run with softroce run --hosts 2");
  return value;
}

bool is_first() { return std::strcmp(variable("SOFTROCE_HOST"), "0") == 0; }

// The guests' own command; the driver's words are ours alone, so no quoting is needed.
void softroce(const std::string& words) {
  must(std::system(("softroce " + words + " > /dev/null").c_str()) == 0, "softroce " + words + " failed");
}

void meet(const std::string& where) { softroce("barrier " + where + " 120"); }

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

std::byte pattern(std::uint64_t number, std::size_t at) {
  return static_cast<std::byte>((number * 151 + at * 7 + 3) & 0xff);
}

// One connection; both sides send numbered messages as fast as the other takes them.
class Connection {
 public:
  explicit Connection(const std::string& name) : name_(name), bytes_(2 * depth * message_size) {
    weft::ContextOptions options;
    options.provider = std::string("verbs:") + variable("SOFTROCE_DEVICE");
    options.peer_timeout = peer_timeout;
    context_ = weft::Context::open(options);
    queue_ = context_.create_completion_queue({.capacity = 4 * depth});
    region_ = context_.register_memory(bytes_.data(), bytes_.size(), weft::Access::local_write);
    const weft::EndpointOptions wishes{
        .queue = queue_, .send_depth = depth, .receive_depth = depth, .timeout = 60s};
    const std::string port = ":7900";
    if (is_first()) {
      meet(name_ + "-listening");
      endpoint_ = context_.connect(variable("SOFTROCE_CONTROL_PEER") + port, wishes);
    } else {
      listener_ = context_.listen(variable("SOFTROCE_CONTROL_ADDRESS") + port, {.queue = queue_});
      meet(name_ + "-listening");
      std::optional<weft::ConnectionRequest> request;
      std::array<weft::Completion, 1> entry;
      while (!request) {
        must(!queue_.wait(entry, 60s).empty(), "nobody connects");
        request = listener_.next();
      }
      endpoint_ = request->prepare(wishes);
      request->accept();
    }
    for (std::uint32_t slot = 0; slot < depth; ++slot) receive(slot);
    endpoint_.wait_up(60s);
  }

  // Moves messages for so long, or until the endpoint ends.
  void exchange(Clock::duration time, bool sending) {
    const auto until = Clock::now() + time;
    while (!ended_ && Clock::now() < until) {
      while (sending && !ended_ && sent_ - confirmed_ < depth) {
        if (!send()) break;
      }
      take(100ms);
    }
  }
  // Waits for what was sent to be confirmed, and until the other side is as far: it may still be sending, and
  // that needs receives here.
  void settle(Clock::duration patience, const std::string& where) {
    const auto until = Clock::now() + patience;
    while (!ended_ && confirmed_ != sent_ && Clock::now() < until) take(100ms);
    must(ended_ || confirmed_ == sent_,
         fmt::format("{} of {} messages are not confirmed", sent_ - confirmed_, sent_));
    std::future<void> met = std::async(std::launch::async, [&] { meet(where); });
    while (met.wait_for(0s) != std::future_status::ready) take(50ms);
    met.get();
  }
  [[nodiscard]] bool ended() const { return ended_.has_value(); }
  [[nodiscard]] Status cause() const { return *ended_; }
  [[nodiscard]] std::string end() const { return endpoint_.describe_end(); }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::uint64_t received() const { return received_; }

 private:
  [[nodiscard]] std::byte* place(std::size_t slot) { return bytes_.data() + slot * message_size; }
  void receive(std::size_t slot) {
    const Status status = endpoint_.receive(region_.slice(slot * message_size, message_size), slot);
    must(status == Status::ok || ended() || status == Status::not_connected, "a receive was refused");
  }
  bool send() {
    const std::size_t slot = depth + sent_ % depth;
    std::byte* const at = place(slot);
    std::memcpy(at, &sent_, sizeof sent_);
    for (std::size_t i = sizeof sent_; i < message_size; ++i) at[i] = pattern(sent_, i);
    const Status status = endpoint_.send(region_.slice(slot * message_size, message_size), sent_);
    if (status == Status::ok) ++sent_;
    return status == Status::ok;
  }
  void check(std::size_t slot) {
    const std::byte* const at = place(slot);
    std::uint64_t number = 0;
    std::memcpy(&number, at, sizeof number);
    must(number == received_, fmt::format("message {} came where {} belongs", number, received_));
    for (std::size_t i = sizeof number; i < message_size; ++i)
      must(at[i] == pattern(number, i), fmt::format("byte {} of message {} was altered", i, number));
    ++received_;
  }
  void take(std::chrono::milliseconds time) {
    std::array<weft::Completion, 16> entries;
    for (const weft::Completion& entry : queue_.wait(entries, time)) {
      if (entry.operation == Operation::endpoint_ended) ended_ = entry.status;
      if (entry.status != Status::ok) continue;
      if (entry.operation == Operation::send)
        must(entry.context == confirmed_++, "a send completed out of order");
      if (entry.operation != Operation::receive) continue;
      must(entry.bytes == message_size, "a message has another length");
      check(entry.context);
      receive(entry.context);
    }
  }

  std::string name_;
  std::vector<std::byte> bytes_;
  weft::Context context_;
  weft::CompletionQueue queue_;
  weft::MemoryRegion region_;
  weft::Listener listener_;
  weft::Endpoint endpoint_;
  std::uint64_t sent_ = 0;
  std::uint64_t confirmed_ = 0;
  std::uint64_t received_ = 0;
  std::optional<Status> ended_;
};

struct Scenario {
  std::string name;
  std::string treatment;    // of the wires, by the first host
  Clock::duration lasting;  // then the wires are restored; 0: only when it is over
  bool loaded;              // messages move meanwhile
  bool ends;                // the endpoints have to end
};

void run(const Scenario& scenario) {
  Connection connection(scenario.name);
  connection.exchange(2s, true);
  connection.settle(30s, scenario.name + "-ready");
  must(!connection.ended() && connection.received() > 0,
       "the connection did not work to begin with: " + connection.end());
  if (is_first()) softroce(scenario.treatment);
  const auto cut = Clock::now();
  if (scenario.ends) {
    connection.exchange(peer_timeout + slack, scenario.loaded);
    const double took = seconds(Clock::now() - cut);
    // The guests' barrier goes its own way, so they meet whatever the wires do.
    meet(scenario.name + "-over");
    if (is_first()) softroce("wire data restore");
    if (is_first()) softroce("wire control restore");
    must(connection.ended(), fmt::format("the endpoint is still up {:.1f} s after the cut", took));
    must(connection.cause() == Status::peer_lost, "it ended for another reason: " + connection.end());
    fmt::print("ok {}: ended after {:.1f} s, peer_lost, {} messages sent, {} received\n", scenario.name, took,
               connection.sent(), connection.received());
  } else {
    connection.exchange(scenario.lasting, scenario.loaded);
    if (is_first()) softroce("wire data restore");
    if (is_first()) softroce("wire control restore");
    connection.exchange(peer_timeout + slack, scenario.loaded);
    connection.settle(60s, scenario.name + "-quiet");
    connection.exchange(1s, false);
    must(!connection.ended(), "a false alarm: the endpoint ended: " + connection.end());
    fmt::print("ok {}: still up, {} messages sent, {} received\n", scenario.name, connection.sent(),
               connection.received());
    meet(scenario.name + "-over");
  }
  std::fflush(stdout);
}

const std::vector<Scenario> scenarios = {
    {"data-cut-under-load", "wire data cut", 0s, true, true},
    {"data-cut-while-idle", "wire data cut", 0s, false, true},
    {"control-cut-under-load", "wire control cut", 0s, true, true},
    {"control-cut-while-idle", "wire control cut", 0s, false, true},
    // Not by two commands: what lies between them grows on a busy machine, beyond what the tries last.
    {"data-cut-and-restored", "wire data pause 1000ms", 1s, true, false},
    {"control-cut-and-restored", "wire control pause 1500ms", 1500ms, true, false},
    {"data-loses-one-percent", "wire data loss 1%", 20s, true, false},
    {"nothing-happens-while-idle", "wire data status", 12s, false, false},
};

}  // namespace

int main(int count, char** arguments) {
  for (const Scenario& scenario : scenarios) {
    bool wanted = count == 1;
    for (int i = 1; i < count; ++i) wanted = wanted || scenario.name == arguments[i];
    if (!wanted) continue;
    try {
      run(scenario);
    } catch (const std::exception& error) {
      fmt::print("FAILED {}: {}\n", scenario.name, error.what());
      std::fflush(stdout);
      return 1;  // the two hosts would not meet any more
    }
  }
  return 0;
}
