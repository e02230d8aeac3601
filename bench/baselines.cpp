#include "baselines.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <set>
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

// A baseline over a library that not every machine has stands in a module beside the program, which registers
// it when loaded. Only when wanted: what such a library does to a process when it comes must not be measured
// with others.
void load_module(const std::string& name) {
  static std::set<std::string> tried;
  if (!tried.insert(name).second || name.find('/') != std::string::npos) return;
  std::error_code unreadable;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  for (const char* folder : {"../lib/weft-perf", WEFT_PERF_MODULES}) {
    const auto path = program.parent_path() / folder / ("weft-baseline-" + name + ".so");
    if (!std::filesystem::exists(path, unreadable)) continue;
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr)  // never closed: it is registered
      std::fprintf(stderr, "weft-perf: no baseline for %s: %s\n", name.c_str(), dlerror());
    return;
  }
}

}  // namespace

BaselineRegistration::BaselineRegistration(Baseline baseline) { baselines().push_back(std::move(baseline)); }

std::optional<Contender> find_baseline(const std::string& provider) {
  const std::string undecorated = provider.substr(provider.rfind('+') + 1);  // npos + 1 is 0: the whole name
  const std::string plain = undecorated.substr(0, undecorated.find(':'));
  if (!find_exactly(plain)) load_module(plain);
  if (auto exact = find_exactly(undecorated)) return exact;
  return find_exactly(plain);
}

}  // namespace perf
