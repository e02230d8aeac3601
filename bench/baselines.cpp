#include "baselines.hpp"

#include <utility>
#include <vector>

namespace perf {
namespace {

// A function, so that it exists before the first registration whatever the order of the files.
std::vector<Baseline>& baselines() {
  static std::vector<Baseline> all;
  return all;
}

std::optional<Contender> find_exactly(const std::string& name) {
  for (const Baseline& baseline : baselines()) {
    if (baseline.provider == name) return baseline.contender;
  }
  return std::nullopt;
}

}  // namespace

BaselineRegistration::BaselineRegistration(Baseline baseline) { baselines().push_back(std::move(baseline)); }

std::optional<Contender> find_baseline(const std::string& provider) {
  const std::string undecorated = provider.substr(provider.rfind('+') + 1);  // npos + 1 is 0: the whole name
  if (auto exact = find_exactly(undecorated)) return exact;
  return find_exactly(undecorated.substr(0, undecorated.find(':')));
}

}  // namespace perf
