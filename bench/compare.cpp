#include "compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "baselines.hpp"
#include "compare_options.hpp"
#include "contest.hpp"
#include "json_report.hpp"
#include "machine.hpp"
#include "progress.hpp"
#include "report/html_report.hpp"
#include "table.hpp"
#include "weft_contender.hpp"

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;

struct Job {
  std::string provider;
  Workload workload;
};

// Two kinds of rows, of which a device can do one: in its null mode, where nothing ever arrives, it is done
// with a request within the call that posts it.
void check_device(const Workload& workload) {
  const bool is_null = std::getenv("FAKEVERBS_NULL") != nullptr;
  if ((workload.metric == Metric::call) == is_null) return;
  if (is_null) {
    throw std::runtime_error(fmt::format(
        "'{}' needs a peer, and on a device in null mode nothing arrives; there --operations call "
        "picks what can be measured",
        title(workload)));
  }
  throw std::runtime_error(fmt::format(
      "'{}' is measured where a fabric is done within the call: on the verbs device made of software, "
      "by `fakeverbs --null -- weft-perf compare --providers verbs:fake0 --operations call`",
      title(workload)));
}

std::vector<Job> jobs_of(const CompareOptions& options) {
  const std::vector<std::string> providers =
      options.providers.empty() ? usable_providers() : options.providers;
  if (providers.empty()) {
    throw std::runtime_error("no provider can run on this machine; weft-info says why of each");
  }
  std::vector<Job> jobs;
  for (const std::string& provider : providers) {
    const std::optional<Contender> native = find_baseline(provider);
    const bool messages = native && native->moves_messages;
    for (const Workload& workload : messages ? without_pieces(options.workloads) : options.workloads) {
      check_device(workload);
      jobs.push_back({provider, workload});
    }
  }
  return jobs;
}

// A minute of measuring should not end with "cannot write".
void check_writable(const std::string& file, const char* option) {
  if (file.empty()) return;
  if (!std::ofstream(file, std::ios::app)) {
    throw std::runtime_error(fmt::format("cannot write '{}' ({}); does its folder exist?", file, option));
  }
}

std::string job_text(const Job& job) {
  return fmt::format("{} {} {}, batch {}", job.provider, title(job.workload), size_text(job.workload.size),
                     job.workload.batch);
}

void print_summary(const std::vector<RowResult>& rows, const ReportHost& host) {
  std::vector<double> probes;
  std::size_t unresolved = 0;
  for (const RowResult& row : rows) {
    probes.insert(probes.end(), row.probes.begin(), row.probes.end());
    if (row.comparisons.front().ratio && !row.comparisons.front().ratio->resolved) ++unresolved;
  }
  fmt::print("\n{}\n", table_legend());
  fmt::print(
      "Machine: {}, {} cores, {}; client on core {}, server on core {}.\n"
      "The two cores were {}: half a round trip through shared memory took {:.2f} us ({:.2f} to {:.2f}).\n"
      "Compiled with {}, {}.\n",
      host.machine.processor, host.machine.processors, host.machine.kernel, host.cores.client,
      host.cores.server, state_text(probes), median(probes), quantile(probes, 0), quantile(probes, 1),
      host.machine.compiler, host.machine.build);
  if (unresolved > 0) {
    fmt::print(
        "{} of {} ratios are not resolved; --seconds {:.0f} may settle them, so may a quieter machine.\n",
        unresolved, rows.size(), host.seconds * 3);
  }
}

}  // namespace

int compare(const std::vector<std::string>& arguments) {
  const std::optional<CompareOptions> options = parse_compare_options(arguments);
  if (!options) return 0;
  check_writable(options->json_file, "--json");
  check_writable(options->report_file, "--report");

  const ReportHost host{describe_machine(), choose_cores(), options->seconds};
  const std::vector<Job> jobs = jobs_of(*options);
  const Clock::time_point start = Clock::now();
  const auto total =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options->seconds));
  Progress progress(jobs.size(), std::chrono::seconds(std::lround(options->seconds)));
  constexpr double busy = 0.5;
  if (host.machine.load > busy) {
    fmt::print(stderr, "The machine is busy (load average {:.1f}); the figures will suffer.\n",
               host.machine.load);
  }
  fmt::print("{}", table_header());
  std::fflush(stdout);

  std::vector<RowResult> rows;
  bool all_ran = true;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    progress.start_row(i + 1, job_text(job));
    // Each row gets an equal share of what is left; rows that end early leave their time to the others.
    const Clock::duration left = start + total - Clock::now();
    const ContestPlan plan{host.cores, Clock::now() + left / static_cast<int>(jobs.size() - i),
                           [&] { progress.tick(); }};
    const std::optional<Contender> native = find_baseline(job.provider);
    const bool swap = options->against_itself && native;
    const Contender contender = swap ? *native : weft_contender(job.provider);
    rows.push_back(run_contest(job.provider, job.workload, contender, native, plan));
    all_ran = all_ran && rows.back().weft_problem.empty();
    progress.clear();
    fmt::print("{}", table_row(rows.back()));
    std::fflush(stdout);
  }
  print_summary(rows, host);
  if (!options->json_file.empty()) write_json_report(options->json_file, host, rows);
  if (!options->report_file.empty()) {
    write_html_report(options->report_file, host, rows);
    fmt::print("Written: {}\n", options->report_file);
  }
  return all_ran ? 0 : 1;
}

}  // namespace perf
