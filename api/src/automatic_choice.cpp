#include "automatic_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "log.hpp"
#include "survey.hpp"
#include "text.hpp"
#include "weft/status.hpp"

namespace weft::core {
namespace {

struct Candidate {
  ProviderName name;
  int priority = 0;
  std::string reason;  // why it is passed over; empty: not tried yet
  // Nothing of its provider can run, so its priority may not be known; it is named whatever is taken.
  bool is_whole_provider = false;

  [[nodiscard]] bool operator<(const Candidate& other) const { return priority > other.priority; }
  [[nodiscard]] std::string text() const { return fmt::format("{} ({})", name.to_string(), reason); }
};

std::string trust_reason(const std::string& name) {
  return fmt::format("it trusts {}, so it is used only when named: WEFT_PROVIDER={}",
                     to_text(Trust::whoever_reaches_the_port), name);
}

// A fabric may be reported once per device; the best report counts.
void add(std::vector<Candidate>& candidates, Candidate candidate) {
  for (Candidate& present : candidates) {
    if (present.name.to_string() != candidate.name.to_string()) continue;
    const bool is_better = present.reason.empty() == candidate.reason.empty()
                               ? candidate.priority > present.priority
                               : candidate.reason.empty();
    if (is_better) present = std::move(candidate);
    return;
  }
  candidates.push_back(std::move(candidate));
}

void add_fabrics(std::vector<Candidate>& candidates, const Selection& selection,
                 const ProviderReport& report) {
  const bool runs = std::any_of(report.fabrics.begin(), report.fabrics.end(),
                                [](const FabricReport& fabric) { return fabric.usable; });
  if (!runs) {
    int priority = 0;
    for (const FabricReport& fabric : report.fabrics) priority = std::max(priority, fabric.priority);
    candidates.push_back({{report.name, {}}, priority, reason_not_to_run(report), true});
    return;
  }
  for (const FabricReport& fabric : report.fabrics) {
    if (selection.excludes(report.name, fabric.name)) continue;
    Candidate candidate{{report.name, fabric.name}, fabric.priority, {}, false};
    if (!fabric.usable) {
      candidate.reason = fabric.reason.empty() ? "it cannot run and gives no reason" : fabric.reason;
    } else if (fabric.trust == Trust::whoever_reaches_the_port) {
      candidate.reason = trust_reason(candidate.name.to_string());
    }
    add(candidates, std::move(candidate));
  }
}

void warn_about_misspelt_exclusions(const Selection& selection, const std::vector<ProviderReport>& all) {
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const ProviderReport& one : all) names.push_back(one.name);
  for (const ProviderName& excluded : selection.excluded) {
    if (std::find(names.begin(), names.end(), excluded.name) != names.end()) continue;
    log(LogLevel::warning, "{} excludes {}, which does not exist here{}; existing: {}", selection.source,
        quoted(excluded.name), suggestion(excluded.name, names), joined(names));
  }
}

void warn_about_passed_over(const Candidate& taken, const std::vector<Candidate>& candidates) {
  std::vector<std::string> passed_over;
  for (const Candidate& candidate : candidates) {
    if (candidate.reason.empty()) continue;
    if (candidate.is_whole_provider || candidate.priority > taken.priority) {
      passed_over.push_back(candidate.text());
    }
  }
  if (passed_over.empty()) return;
  log(LogLevel::warning,
      "chose {} automatically; passed over {}; name a provider in WEFT_PROVIDER to be sure of it",
      taken.name.to_string(), joined(passed_over, ", "));
}

[[noreturn]] void nothing_runs(const Selection& selection, const std::vector<Candidate>& candidates) {
  std::vector<std::string> reasons;
  reasons.reserve(candidates.size());
  for (const Candidate& candidate : candidates) reasons.push_back(candidate.text());
  const std::string asked = selection.excluded.empty() ? "WEFT_PROVIDER is not set" : selection.source;
  throw Error(
      Status::unavailable,
      fmt::format("no provider can be chosen automatically ({}): {}; plug-ins are looked for in {} "
                  "(WEFT_PROVIDER_PATH adds folders)",
                  asked, joined(reasons, ", ", "no plug-in was found"), joined(PluginLoader::folders())));
}

}  // namespace

OpenedChoice open_automatically(const Selection& selection, const provider::OpenRequest& request) {
  const std::vector<ProviderReport> all = survey_all();
  warn_about_misspelt_exclusions(selection, all);
  std::vector<Candidate> candidates;
  for (const ProviderReport& one : all) {
    if (one.decorator || selection.excludes(one.name)) continue;
    add_fabrics(candidates, selection, one);
  }
  std::stable_sort(candidates.begin(), candidates.end());

  for (Candidate& candidate : candidates) {
    if (!candidate.reason.empty()) continue;
    try {
      OpenedChoice opened = open_choice({{}, candidate.name}, request);
      warn_about_passed_over(candidate, candidates);
      return opened;
    } catch (const Error& error) {
      candidate.reason = error.what();
    }
  }
  nothing_runs(selection, candidates);
}

}  // namespace weft::core
