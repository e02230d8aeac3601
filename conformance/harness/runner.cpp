#include "harness/runner.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "harness/ahead.hpp"
#include "harness/fork_server.hpp"
#include "harness/process_state.hpp"
#include "harness/rules.hpp"
#include "harness/run.hpp"

namespace conformance {
namespace {

// One test on one setting, as the runner sees it.
struct Job {
  std::size_t index = 0;
  Setting setting;
  PeerKind kind = PeerKind::process;
  std::uint64_t seed = 0;
  bool long_run = false;
  bool in_process = false;
  bool deviates = false;
  std::string obstacle;  // why it cannot run here
  Results* results = nullptr;
  std::size_t result = 0;
};

// What came of it.
struct Outlook {
  Findings findings;
  double seconds = 0;
};

// What the test's process does.
void run_test(Channel& control, const std::string& packed) {
  Test test = Test::unpacked(packed);
  run_as_process(Role::test, test, [&] { test.about().body(test); });
  control.put(Channel::Kind::finished, Findings::here().take());
}

void note(Findings& findings, const std::string& text) { findings.add({__FILE__, __LINE__, text}); }

// Tells where every process of the test stands, then ends them.
void end_hung(const Process& process, Duration limit, Findings& findings) {
  std::string state;
  for (const pid_t member : members_of_group(process.id)) state += stacks_of(member);
  std::cerr << state << std::flush;
  note(findings, "still running after " +
                     std::to_string(std::chrono::duration_cast<std::chrono::seconds>(limit).count()) +
                     " s; its processes were ended. Where they stood is written above");
}

// Runs the test by itself, and notes what else may be wrong with it.
Outlook run_job(const Job& job) {
  const conformance::Test test(job.index, job.setting, job.kind, job.seed, job.long_run);
  const Stopwatch watch;
  Outlook outlook;
  try {
    run_isolated(test, outlook.findings);
  } catch (const std::exception& error) {
    note(outlook.findings, std::string("the runner could not run it: ") + error.what());
  }
  outlook.seconds = std::chrono::duration<double>(watch.elapsed()).count();
  return outlook;
}

// All jobs that GoogleTest's filter has left, side by side when that was asked for.
class SideBySide {
 public:
  // Once the filter is known: at the first test.
  SideBySide(const std::vector<Job>& jobs, unsigned at_once) {
    const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
    std::set<std::pair<std::string, std::string>> wanted;
    for (int i = 0; i < unit.total_test_suite_count(); ++i) {
      const testing::TestSuite& suite = *unit.GetTestSuite(i);
      for (int j = 0; j < suite.total_test_count(); ++j) {
        if (suite.GetTestInfo(j)->should_run()) wanted.emplace(suite.name(), suite.GetTestInfo(j)->name());
      }
    }
    for (const Job& job : jobs) {
      if (wanted.contains({job.setting.text(), job.results->at(job.result).test})) jobs_.push_back(job);
    }
    outlooks_ = std::vector<std::optional<Outlook>>(jobs_.size());
    ahead_.emplace(jobs_.size(), at_once, [this](std::size_t i) { outlooks_[i].emplace(run_job(jobs_[i])); });
  }

  Outlook outlook_of(const Job& job) {
    const auto found =
        std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& one) { return one.result == job.result; });
    const auto index = static_cast<std::size_t>(found - jobs_.begin());
    ahead_->wait_for(index);
    return std::move(*outlooks_[index]);
  }

 private:
  std::vector<Job> jobs_;
  std::vector<std::optional<Outlook>> outlooks_;
  std::optional<Ahead> ahead_;  // ends first
};

std::uint64_t base_seed = 0;
unsigned at_once = 1;
std::vector<Job> all_jobs;
std::optional<SideBySide> side_by_side;

class ConformanceTest : public testing::Test {
 public:
  explicit ConformanceTest(const Job& job) : job_(job) {}

  void TestBody() override {
    // GoogleTest's word for it; the result stays `not run`, and with it the exit status tells.
    if (!job_.obstacle.empty()) GTEST_SKIP() << job_.obstacle;
    if (job_.in_process) {
      const Stopwatch watch;
      conformance::Test test(job_.index, job_.setting, job_.kind, job_.seed, job_.long_run);
      run_noting_failures(Role::test, [&] { test.about().body(test); });
      report(Findings::here(), std::chrono::duration<double>(watch.elapsed()).count());
      (void)Findings::here().take();
      return;
    }
    if (at_once > 1 && !side_by_side) side_by_side.emplace(all_jobs, at_once);
    Outlook outlook = side_by_side ? side_by_side->outlook_of(job_) : run_job(job_);
    report(outlook.findings, outlook.seconds);
  }

 private:
  void report(Findings& findings, double seconds) const {
    Result& result = job_.results->at(job_.result);
    result.seconds = seconds;
    result.checks = findings.checks();
    if (result.checks == 0 && !findings.failed()) note(findings, "nothing was checked");
    for (const Failure& failure : findings.failures()) {
      ADD_FAILURE_AT(failure.file.c_str(), failure.line) << failure.text;
      result.detail += (result.detail.empty() ? "" : "\n") + failure.file + ':' +
                       std::to_string(failure.line) + ": " + failure.text;
    }
    const bool failed = findings.failed();
    result.outcome = failed ? Outcome::fail : job_.deviates ? Outcome::deviates : Outcome::pass;
    if (failed) {
      std::cout << "  again: weft-conformance --provider " << job_.setting.selector() << " --threads "
                << (job_.setting.threads == weft::ThreadMode::single ? "single" : "safe") << " --seed "
                << base_seed << " --gtest_filter='*." << result.test << "'\n";
    }
    RecordProperty("checks", std::to_string(result.checks));
  }

  Job job_;
};

// The same for one test whatever else runs.
std::uint64_t seed_of(std::uint64_t base, const std::string& name) {
  std::uint64_t hash = base ^ 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

bool is_selected(const Options& options, const TestCase& test) {
  if (options.quick && test.traits.cost != Cost::quick) return false;
  if (!options.long_run && test.traits.cost == Cost::long_run) return false;
  return options.rules.empty() ||
         std::any_of(options.rules.begin(), options.rules.end(),
                     [&](const auto& wanted) { return is_meant(test.rule, wanted); });
}

void register_one(const Options& options, const Found& found, Job job) {
  const TestCase& test = all_tests()[job.index];
  const std::string name = test.name + (job.kind == PeerKind::thread ? "_threads" : "");
  job.seed = seed_of(options.seed, name);
  job.long_run = options.long_run;
  job.in_process = options.in_process;
  job.deviates = found.deviations.contains(test.rule);
  job.obstacle = found.usable ? "" : found.reason;
  if (found.usable && test.traits.network) job.obstacle = obstacle_to_networks(found);
  job.result = job.results->expect({.rule = test.rule,
                                    .test = name,
                                    .setting = job.setting,
                                    .outcome = Outcome::not_run,
                                    .seconds = 0,
                                    .checks = 0,
                                    .detail = job.obstacle});
  if (job.obstacle.empty()) all_jobs.push_back(job);
  testing::RegisterTest(job.setting.text().c_str(), name.c_str(), nullptr, test.rule.c_str(), test.file,
                        test.line, [job]() -> ConformanceTest* { return new ConformanceTest(job); });
}

}  // namespace

void run_isolated(const Test& test, Findings& findings) {
  Process process = start_process(run_test, test.packed());
  const Duration limit = test.about().traits.limit;
  const auto finished = process.control.ending(Channel::Kind::finished, limit);
  if (finished) {
    findings.merge(*finished, "");
  } else if (!process.control.ending(Channel::Kind::exited, 0s)) {
    end_hung(process, limit, findings);
  }
  // Static destructors and a leak checker still run in the process.
  auto exited = process.control.ending(Channel::Kind::exited, finished ? 15s : 0s);
  if (finished && !exited) {
    end_hung(process, 15s, findings);
    note(findings, "the process had finished its test, but could not exit");
  }
  for (const pid_t member : members_of_group(process.id)) kill(member, SIGKILL);
  if (!exited) exited = process.control.ending(Channel::Kind::exited, 10s);
  const std::string how = exited ? exit_in_words(*exited) : "";
  if (!how.empty() && !findings.failed()) note(findings, "the test's process " + how);
}

void register_tests(const Options& options, const std::vector<Found>& found, Results& results) {
  base_seed = options.seed;
  at_once = options.in_process || testing::GTEST_FLAG(repeat) != 1 ? 1 : options.jobs;
  std::vector<weft::ThreadMode> modes;
  if (options.safe) modes.push_back(weft::ThreadMode::safe);
  if (options.single) modes.push_back(weft::ThreadMode::single);

  std::vector<std::size_t> order(all_tests().size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto& rules = contract_rules();
  const auto place = [&](std::size_t i) {
    return std::find(rules.begin(), rules.end(), all_tests()[i].rule) - rules.begin();
  };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return place(a) < place(b); });

  for (const Found& one : found) {
    for (const weft::ThreadMode mode : modes) {
      for (const std::size_t index : order) {
        const TestCase& test = all_tests()[index];
        if (!is_selected(options, test)) continue;
        Job job;
        job.index = index;
        job.setting = {one.provider, one.fabric, mode,
                       options.fabric_class.value_or(class_of(one.provider, one.fabric))};
        job.results = &results;
        register_one(options, one, job);
        if (!test.traits.thread_peer) continue;
        job.kind = PeerKind::thread;
        register_one(options, one, job);
      }
    }
  }
}

void drop_filtered(Results& results) {
  const testing::UnitTest& unit = *testing::UnitTest::GetInstance();
  for (int i = 0; i < unit.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *unit.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (!test.should_run()) results.forget(suite.name(), test.name());
    }
  }
}

}  // namespace conformance
