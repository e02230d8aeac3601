// What weft costs above bare verbs: nanoseconds per post, per operation in batches of 32, and per completion,
// in both thread modes, beside the same calls on the same device. The device is the one made of software in
// its null mode, where a request completes in the call that posts it, so that what is above it shows.
//
// Rounds of both take turns; `above_ns` is the median of the differences within the pairs, which what else
// the machine does hardly moves.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "bare_pair.hpp"
#include "instructions/pair.hpp"

namespace fakeverbs_cost {
namespace {

using Clock = std::chrono::steady_clock;
using Work = BarePair::Work;
using weft::Flags;
using weft::Operation;

constexpr std::size_t round_size = 128;

void must(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

// One operation, as weft is asked for it.
class WeftSide {
 public:
  explicit WeftSide(weft::ThreadMode threads) : pair_({"verbs:fake0", threads}) {}

  void choose(Work work, bool signalled) {
    inline_ = weft::Segment::inline_bytes(bytes_.data(), 8);
    registered_ = pair_.source(4096);
    weft::WorkRequest request;
    request.operation = work == Work::send_8 ? Operation::send : Operation::write;
    request.flags = signalled ? Flags::none : Flags::unsignalled;
    if (work != Work::write_4096) request.flags |= Flags::inline_data;
    request.segments = {work == Work::write_4096 ? &registered_ : &inline_, 1};
    request.remote = pair_.target();
    requests_.fill(request);
  }
  void post() {
    must(pair_.client().post({requests_.data(), 1}).accepted == 1, "weft: a request was refused");
  }
  void post_batch() {
    must(pair_.client().post(requests_).accepted == requests_.size(), "weft: a batch was refused");
  }
  std::size_t poll(std::size_t room) {
    const auto polled = pair_.client_queue().poll({entries_.data(), room});
    for (const weft::Completion& entry : polled)
      must(entry.status == weft::Status::ok, "weft: an operation failed");
    return polled.size();
  }

 private:
  instructions::Pair pair_;
  std::array<std::byte, 8> bytes_{};
  weft::Segment inline_;
  weft::Segment registered_;
  std::array<weft::WorkRequest, BarePair::longest_chain> requests_{};
  std::array<weft::Completion, 16> entries_{};
};

template <class Side>
void drain(Side& side) {
  while (side.poll(16) != 0) {
  }
}

template <class Act>
double timed(const Act& act) {
  const auto start = Clock::now();
  act();
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// `weft` and `bare` carry out and time one round of `operations` each.
template <class WeftRound, class BareRound>
void take_turns(benchmark::State& state, double operations, const WeftRound& weft, const BareRound& bare) {
  std::vector<double> weft_ns;
  std::vector<double> bare_ns;
  std::vector<double> above_ns;
  bool weft_first = false;
  for (auto _ : state) {
    weft_first = !weft_first;
    double of_weft = weft_first ? weft() : 0;
    const double of_bare = bare();
    if (!weft_first) of_weft = weft();
    state.SetIterationTime(of_weft / 1e9);
    weft_ns.push_back(of_weft / operations);
    bare_ns.push_back(of_bare / operations);
    above_ns.push_back((of_weft - of_bare) / operations);
  }
  state.counters["weft_ns"] = median(weft_ns);
  state.counters["bare_ns"] = median(bare_ns);
  state.counters["above_ns"] = median(above_ns);
}

void post(benchmark::State& state, weft::ThreadMode threads, Work work, bool signalled) {
  WeftSide weft(threads);
  BarePair bare;
  weft.choose(work, signalled);
  take_turns(
      state, round_size,
      [&] {
        const double time = timed([&] {
          for (std::size_t i = 0; i < round_size; ++i) weft.post();
        });
        drain(weft);
        return time;
      },
      [&] {
        const double time = timed([&] {
          for (std::size_t i = 0; i < round_size; ++i) bare.post(work, signalled);
        });
        drain(bare);
        return time;
      });
}

void post_32(benchmark::State& state, weft::ThreadMode threads, Work work) {
  WeftSide weft(threads);
  BarePair bare;
  weft.choose(work, false);
  constexpr std::size_t batches = round_size / BarePair::longest_chain;
  take_turns(
      state, round_size,
      [&] {
        const double time = timed([&] {
          for (std::size_t i = 0; i < batches; ++i) weft.post_batch();
        });
        drain(weft);
        return time;
      },
      [&] {
        const double time = timed([&] {
          for (std::size_t i = 0; i < batches; ++i) bare.post_chain(work);
        });
        drain(bare);
        return time;
      });
}

void poll(benchmark::State& state, weft::ThreadMode threads, std::size_t room) {
  WeftSide weft(threads);
  BarePair bare;
  weft.choose(Work::write_4096, true);
  take_turns(
      state, round_size,
      [&] {
        for (std::size_t i = 0; i < round_size; ++i) weft.post();
        return timed([&] {
          for (std::size_t taken = 0; taken < round_size;) taken += weft.poll(room);
        });
      },
      [&] {
        for (std::size_t i = 0; i < round_size; ++i) bare.post(Work::write_4096, true);
        return timed([&] {
          for (std::size_t taken = 0; taken < round_size;) taken += bare.poll(static_cast<int>(room));
        });
      });
}

void add(weft::ThreadMode threads, const std::string& mode) {
  const auto name = [&](const char* what) { return std::string(what) + "/" + mode; };
  const auto set_up = [](benchmark::internal::Benchmark* one) {
    one->UseManualTime()->Iterations(20'000)->Unit(benchmark::kNanosecond);
  };
  set_up(benchmark::RegisterBenchmark(name("post_send_8B_inline_unsignalled").c_str(), post, threads,
                                      Work::send_8, false));
  set_up(benchmark::RegisterBenchmark(name("post_write_8B_inline_unsignalled").c_str(), post, threads,
                                      Work::write_8, false));
  set_up(benchmark::RegisterBenchmark(name("post_write_4KiB_signalled").c_str(), post, threads,
                                      Work::write_4096, true));
  set_up(benchmark::RegisterBenchmark(name("post_32_sends_8B_inline_unsignalled").c_str(), post_32, threads,
                                      Work::send_8));
  set_up(benchmark::RegisterBenchmark(name("post_32_writes_8B_inline_unsignalled").c_str(), post_32, threads,
                                      Work::write_8));
  set_up(benchmark::RegisterBenchmark(name("poll_yielding_1").c_str(), poll, threads, 1));
  set_up(benchmark::RegisterBenchmark(name("poll_yielding_16").c_str(), poll, threads, 16));
}

// The device comes by preloading, so the program starts itself once more beneath it.
void start_on_null_device(char** arguments) {
  if (std::getenv("FAKEVERBS_NULL") != nullptr) return;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string launcher = self.parent_path() / "fakeverbs";
  const std::string name = self;
  std::vector<char*> command;
  std::array<std::string, 6> words{launcher, "--null", "--network", "cost", "--", name};
  for (std::string& word : words) command.push_back(word.data());
  for (char** argument = arguments + 1; *argument != nullptr; ++argument) command.push_back(*argument);
  command.push_back(nullptr);
  ::execv(launcher.c_str(), command.data());
  std::perror(launcher.c_str());
  std::exit(2);
}

}  // namespace
}  // namespace fakeverbs_cost

int main(int count, char** arguments) {
  fakeverbs_cost::start_on_null_device(arguments);
  fakeverbs_cost::add(weft::ThreadMode::single, "single");
  fakeverbs_cost::add(weft::ThreadMode::safe, "safe");
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
