#include "findings.hpp"

#include <algorithm>
#include <mutex>

#include "advice.hpp"

namespace info {
namespace {

using weft::ContextOptions;
using weft::LogLevel;
using weft::ProgressMode;
using weft::ThreadMode;

// Takes weft's warnings while it lives.
class Warnings {
 public:
  Warnings() {
    weft::set_log_sink([this](LogLevel level, std::string_view line) {
      const std::lock_guard lock(mutex_);
      if (level >= LogLevel::warning) lines_.emplace_back(line);
    });
    weft::set_log_level(LogLevel::warning);
  }
  ~Warnings() { weft::set_log_sink({}); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;

  // Each once, in the order they came.
  [[nodiscard]] std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> once;
    for (const std::string& line : lines_) {
      if (std::find(once.begin(), once.end(), line) == once.end()) once.push_back(line);
    }
    return once;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

template <class Value>
void add_once(std::vector<Value>& values, Value value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

// Opened twice, so that each thread mode and each way of progress is asked for.
OpenedFabric open_fabric(const std::string& selector) {
  OpenedFabric fabric;
  fabric.selector = selector;
  for (const auto& [threads, progress] : {std::pair(ThreadMode::safe, ProgressMode::automatic),
                                          std::pair(ThreadMode::single, ProgressMode::when_called)}) {
    try {
      ContextOptions options;
      options.provider = selector;
      options.thread_mode = threads;
      options.progress_mode = progress;
      const auto attributes = weft::Context::open(options).attributes();
      if (!fabric.attributes) fabric.attributes = attributes;
      add_once(fabric.thread_modes, attributes.thread_mode);
      add_once(fabric.progress_modes, attributes.progress_mode);
    } catch (const std::exception& error) {
      if (fabric.problem.empty()) fabric.problem = error.what();
    }
  }
  return fabric;
}

Provider examine(weft::ProviderReport report) {
  Provider provider;
  std::vector<std::string> selectors;
  for (const weft::FabricReport& fabric : report.fabrics) {
    if (!fabric.usable || report.decorator) continue;
    add_once(selectors, fabric.name.empty() ? report.name : report.name + ':' + fabric.name);
  }
  for (const std::string& selector : selectors) provider.opened.push_back(open_fabric(selector));
  if (!report.loaded) provider.advice = advice_for_loading(report.reason);
  provider.report = std::move(report);
  return provider;
}

Choice try_default() {
  Choice choice;
  try {
    choice.attributes = weft::Context::open().attributes();
  } catch (const std::exception& error) {
    choice.problem = error.what();
  }
  return choice;
}

}  // namespace

Findings look_around() {
  Findings findings;
  Warnings warnings;
  findings.machine = look_at_machine("/");  // before a context is opened, which raises a limit
  findings.version = weft::version();
  findings.plugin_folders = weft::plugin_folders();
  findings.choice = try_default();
  std::vector<std::string> names;
  for (weft::ProviderReport& report : weft::list_providers()) {
    names.push_back(report.name);
    findings.providers.push_back(examine(std::move(report)));
  }
  for (const std::string& name : packaged_providers()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) findings.missing.push_back(name);
  }
  findings.variables = weft::list_variables();
  findings.warnings = warnings.take();
  return findings;
}

}  // namespace info
