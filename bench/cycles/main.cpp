// Connects and closes over and over, and demands that nothing is left behind: no queue pair, no region, no
// descriptor, no memory. Both sides are this process, so that one look sees what either of them keeps.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/weft.hpp>

#include "../program.hpp"
#include "../resident_memory.hpp"
#include "holdings.hpp"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using weft::Access;
using weft::Operation;
using weft::Status;

struct Options {
  std::string provider;
  std::string address;
  std::uint64_t cycles = 1000;
  double most_kib = 0;
  bool help = false;
};

constexpr std::size_t size = 4096;
constexpr auto patience = 60s;

void must(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}
void must_be_ok(Status status, const char* what) {
  must(status == Status::ok, fmt::format("{} answered {}", what, to_string(status)));
}

// A context with its queue, and what its queue said.
struct Host {
  explicit Host(const std::string& provider)
      : context(weft::Context::open({.provider = provider})),
        queue(context.create_completion_queue({.capacity = 64})) {}

  weft::EndpointOptions options() { return {.queue = queue, .timeout = patience}; }

  void collect() {
    std::array<weft::Completion, 16> entries;
    for (const weft::Completion& entry : queue.poll(entries)) seen.push_back(entry);
  }
  // Takes the next completion of this kind, if there is one.
  std::optional<weft::Completion> take(Operation operation) {
    collect();
    const auto found = std::find_if(seen.begin(), seen.end(),
                                    [&](const weft::Completion& e) { return e.operation == operation; });
    if (found == seen.end()) return std::nullopt;
    const weft::Completion entry = *found;
    seen.erase(found);
    return entry;
  }

  weft::Context context;
  weft::CompletionQueue queue;
  std::vector<weft::Completion> seen;
};

class Cycles {
 public:
  explicit Cycles(const Options& options) : near_(options.provider), far_(options.provider) {
    listener_ = far_.context.listen(options.address, {.queue = far_.queue});
  }

  // One life of a connection: memory registered on both sides, a message, a write, an atomic, and an end that
  // comes from either side, by closing, by aborting, or because the last handle goes.
  void run(std::uint64_t number) {
    std::vector<std::byte> near_bytes(size, std::byte{1});
    std::vector<std::byte> far_bytes(size, std::byte{2});
    weft::MemoryRegion near_region = near_.context.register_memory(near_bytes, Access::local_write);
    weft::MemoryRegion far_region =
        far_.context.register_memory(far_bytes, Access::local_write | Access::remote_write);
    weft::MemoryRegion counter =
        far_.context.register_memory(counter_.data(), sizeof(counter_), Access::remote_atomic);

    weft::Endpoint near = near_.context.connect(listener_.address(), near_.options());
    weft::Endpoint far = accept();
    wait_for(near_, Operation::connect);
    wait_for(far_, Operation::connect);

    must_be_ok(far.receive(far_region.slice(0, size / 2), 1), "receive()");
    must_be_ok(near.send(near_region.slice(0, size / 2), 2), "send()");
    must_be_ok(
        near.write(near_region.slice(0, size / 2), near.import_memory(far_region.key()).at(size / 2), 3),
        "write()");
    must_be_ok(near.fetch_add(near_region.slice(0, 8), near.import_memory(counter.key()).at(0), 1, 4),
               "fetch_add()");
    wait_for(near_, Operation::fetch_add);
    wait_for(far_, Operation::receive);
    must(far_bytes.back() == std::byte{1}, "what was written is not there");

    end(number, near, far);
    near = {};
    far = {};
    deregister(near_region);
    deregister(far_region);
    deregister(counter);
    near_.collect();
    far_.collect();
    near_.seen.clear();
    far_.seen.clear();
  }

 private:
  template <class Ready>
  void wait_until(const char* what, Ready ready) {
    for (const auto until = Clock::now() + patience; !ready(); std::this_thread::sleep_for(50us))
      must(Clock::now() < until, fmt::format("waited in vain for {}", what));
  }
  void wait_for(Host& host, Operation operation) {
    std::optional<weft::Completion> entry;
    wait_until("a completion", [&] { return (entry = host.take(operation)).has_value(); });
    must(entry->status == Status::ok || operation == Operation::endpoint_ended,
         fmt::format("an operation failed: {}", to_string(entry->status)));
  }
  weft::Endpoint accept() {
    std::optional<weft::ConnectionRequest> request;
    wait_until("a connection", [&] {
      near_.collect();
      far_.collect();
      return (request = listener_.next()).has_value();
    });
    return request->accept(far_.options());
  }

  void end(std::uint64_t number, weft::Endpoint& near, weft::Endpoint& far) {
    bool near_tells = true;
    switch (number % 4) {
      case 0:
        near.close(10s);
        break;
      case 1:
        far.close(10s);
        break;
      case 2:
        near.abort();
        break;
      default:
        near = {};
        near_tells = false;  // nobody is left to be told
    }
    wait_for(far_, Operation::endpoint_ended);
    if (near_tells) wait_for(near_, Operation::endpoint_ended);
  }

  void deregister(weft::MemoryRegion& region) {
    Status status = Status::ok;
    wait_until("a region to be free", [&] {
      near_.collect();
      far_.collect();
      return (status = region.deregister()) != Status::busy;
    });
    must_be_ok(status, "deregister()");
  }

  Host near_;
  Host far_;
  weft::Listener listener_;
  std::array<std::uint64_t, 1> counter_{};
};

Options read_options(int count, char** arguments) {
  namespace po = boost::program_options;
  Options options;
  po::options_description description(
      "Connects and closes over and over, and fails when anything is left behind");
  auto add = description.add_options();
  add("help,h", po::bool_switch(&options.help), "this text");
  add("provider", po::value(&options.provider)->value_name("NAME"), "as in WEFT_PROVIDER; default: that");
  add("address", po::value(&options.address)->value_name("HOST:PORT")->default_value("127.0.0.1:0"),
      "where it listens");
  add("cycles,n", po::value(&options.cycles)->value_name("N")->default_value(1000), "at least 100");
  add("most-kib", po::value(&options.most_kib)->value_name("X")->default_value(1024),
      "how much memory may grow in all after the first tenth");
  po::variables_map values;
  po::store(po::parse_command_line(count, arguments, description), values);
  po::notify(values);
  if (options.help) std::cout << description;
  if (options.cycles < 100) throw std::runtime_error("--cycles must be at least 100");
  return options;
}

// Whether there is no more of anything.
bool is_within(const perf::Holdings& holdings, const perf::Holdings& limit) {
  return std::all_of(holdings.begin(), holdings.end(), [&](const auto& held) {
    const auto allowed = limit.find(held.first);
    return allowed != limit.end() && held.second <= allowed->second;
  });
}

// What a helper thread still has to take away goes within this time.
perf::Holdings settled(const perf::Holdings& limit) {
  perf::Holdings holdings = perf::count_holdings();
  for (const auto until = Clock::now() + 5s; !is_within(holdings, limit) && Clock::now() < until;) {
    std::this_thread::sleep_for(100ms);
    holdings = perf::count_holdings();
  }
  return holdings;
}

int run(const Options& options) {
  Cycles cycles(options);
  perf::Holdings first;
  double first_kib = 0;
  const std::uint64_t tenth = options.cycles / 10;
  const auto begin = Clock::now();
  int status = 0;
  for (std::uint64_t done = 1; done <= tenth * 10; ++done) {
    cycles.run(done);
    if (done % tenth != 0) continue;
    if (done == tenth) {
      std::this_thread::sleep_for(1s);
      first = perf::count_holdings();
      first_kib = perf::resident_kib();
    }
    const perf::Holdings now = settled(first);
    const double kib = perf::resident_kib();
    const std::chrono::duration<double> time = Clock::now() - begin;
    fmt::print("{} cycles, {:.1f} s: {}, memory {:.0f} KiB ({:+.0f})\n", done, time.count(),
               perf::to_text(now), kib, kib - first_kib);
    std::fflush(stdout);
    const bool last = done == tenth * 10;
    if (last && !is_within(now, first)) {
      fmt::print(stderr, "weft-cycles: it held {} at first\n", perf::to_text(first));
      status = 1;
    }
    if (last && kib - first_kib > options.most_kib) {
      fmt::print(stderr, "weft-cycles: memory grew by more than the {:.0f} KiB of --most-kib\n",
                 options.most_kib);
      status = 1;
    }
  }
  return status;
}

}  // namespace

int main(int count, char** arguments) {
  return perf::run_program("weft-cycles", count, arguments, read_options, run);
}
