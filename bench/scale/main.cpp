// What many endpoints cost: memory of each, and how fast they connect. A listening and a connecting process
// on this machine, each with one context, one queue and the endpoints.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>
#include <weft/weft.hpp>

#include "../forked_process.hpp"
#include "../program.hpp"
#include "../resident_memory.hpp"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string provider;
  std::uint32_t endpoints = 1000;
  std::uint32_t at_once = 64;
  double most_kib = 0;  // 0: no limit
  bool json = false;
  bool help = false;
};

struct Side {
  double kib = 0;  // per endpoint
  double seconds = 0;
};

// One side: connects to `address`, or listens when that is empty and tells where through `told`.
class Crowd {
 public:
  explicit Crowd(const Options& options)
      : options_(options),
        context_(weft::Context::open({.provider = options.provider})),
        queue_(context_.create_completion_queue({.capacity = options.endpoints * receives})) {
    endpoints_.reserve(options.endpoints);
  }

  std::string listen() {
    listener_ = context_.listen("127.0.0.1:0", {.queue = queue_});
    return listener_.address();
  }

  Side connect(const std::string& address) {
    return fill([&] {
      while (endpoints_.size() < options_.endpoints && endpoints_.size() - up_ < options_.at_once)
        endpoints_.push_back(context_.connect(address, endpoint_options()));
    });
  }

  Side accept() {
    return fill([&] {
      while (auto request = listener_.next()) {
        endpoints_.push_back(request->prepare(endpoint_options()));
        request->accept();
      }
    });
  }

 private:
  static constexpr std::uint32_t receives = 16;

  [[nodiscard]] std::string cause_of(const weft::Completion& entry) const {
    for (const weft::Endpoint& endpoint : endpoints_) {
      if (endpoint.id() == entry.endpoint_id) return endpoint.describe_end();
    }
    return std::string(to_string(entry.status));
  }

  [[nodiscard]] weft::EndpointOptions endpoint_options() const {
    weft::EndpointOptions options{.queue = queue_};  // the depths are the usual ones
    options.timeout = 60s;
    return options;
  }

  template <class Step>
  Side fill(const Step& step) {
    const double before = perf::resident_kib();
    const auto begin = Clock::now();
    while (up_ < options_.endpoints) {
      step();
      for (const weft::Completion& entry : queue_.wait(entries_, 100ms)) {
        if (entry.status != weft::Status::ok)
          throw std::runtime_error(fmt::format("endpoint {} did not come up: {}", up_, cause_of(entry)));
        up_ += entry.operation == weft::Operation::connect ? 1 : 0;
      }
      if (Clock::now() - begin > 300s) throw std::runtime_error("the endpoints did not come up within 300 s");
    }
    const std::chrono::duration<double> time = Clock::now() - begin;
    return {.kib = (perf::resident_kib() - before) / options_.endpoints, .seconds = time.count()};
  }

  const Options& options_;
  weft::Context context_;
  weft::CompletionQueue queue_;
  weft::Listener listener_;
  std::vector<weft::Endpoint> endpoints_;
  std::array<weft::Completion, 64> entries_{};
  std::uint32_t up_ = 0;
};

Options read_options(int count, char** arguments) {
  namespace po = boost::program_options;
  Options options;
  po::options_description description("Connects many endpoints and tells what each costs");
  auto add = description.add_options();
  add("help,h", po::bool_switch(&options.help), "this text");
  add("provider", po::value(&options.provider)->value_name("NAME"), "as in WEFT_PROVIDER; default: that");
  add("endpoints,n", po::value(&options.endpoints)->default_value(1000)->value_name("N"), "on each side");
  add("at-once", po::value(&options.at_once)->default_value(64)->value_name("N"),
      "attempts under way at a time");
  add("most-kib", po::value(&options.most_kib)->value_name("X"),
      "exit with status 1 when an endpoint takes more KiB than this");
  add("json", po::bool_switch(&options.json), "JSON instead of text");
  po::variables_map values;
  po::store(po::parse_command_line(count, arguments, description), values);
  po::notify(values);
  if (options.help) std::cout << description;
  if (options.endpoints == 0 || options.endpoints > 50'000 || options.at_once == 0)
    throw std::runtime_error("--endpoints must be 1 to 50000, --at-once at least 1");
  return options;
}

constexpr std::chrono::seconds patience{310};  // longer than either side tries

// The listening process.
void listen_side(const Options& options, perf::Channel& channel) {
  Crowd crowd(options);
  channel.send(perf::Message::address, crowd.listen());
  channel.send(perf::Message::done, fmt::format("{}", crowd.accept().kib));
  (void)channel.receive();  // both sides stay whole until both have measured
}

int connect_side(const Options& options, perf::ForkedProcess& listening) {
  const std::string address = listening.expect(perf::Message::address);
  Crowd crowd(options);
  const Side connecting = crowd.connect(address);
  Side accepting;
  accepting.kib = std::stod(listening.expect(perf::Message::done, patience));

  const double rate = options.endpoints / connecting.seconds;
  if (options.json) {
    const nlohmann::json figures = {{"endpoints", options.endpoints},
                                    {"connects_per_second", rate},
                                    {"kib_per_connecting_endpoint", connecting.kib},
                                    {"kib_per_accepting_endpoint", accepting.kib}};
    fmt::print("{}\n", figures.dump());
  } else {
    fmt::print("{} endpoints on each side came up in {:.2f} s: {:.0f} connects per second\n",
               options.endpoints, connecting.seconds, rate);
    fmt::print("resident memory of an endpoint: {:.1f} KiB where it connects, {:.1f} KiB where it accepts\n",
               connecting.kib, accepting.kib);
  }
  if (options.most_kib != 0 && std::max(connecting.kib, accepting.kib) > options.most_kib) {
    fmt::print(stderr, "weft-scale: that is more than the {} KiB of --most-kib\n", options.most_kib);
    return 1;
  }
  return 0;
}

int run(const Options& options) {
  // It ends with this process, however this one ends.
  perf::ForkedProcess listening("the listening side", std::nullopt,
                                [&](perf::Channel& channel) { listen_side(options, channel); });
  return connect_side(options, listening);
}

}  // namespace

int main(int count, char** arguments) {
  return perf::run_program("weft-scale", count, arguments, read_options, run);
}
