#include "environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <set>

#include "duration.hpp"
#include "log.hpp"
#include "text.hpp"
#include "weft/status.hpp"

namespace weft::core::environment {
namespace {

constexpr std::string_view prefix = "WEFT_";

constexpr std::array<Entry, 5> entries{{
    {"WEFT_PROVIDER", "",
     "provider to use: a name, a list in order of preference (a,b), what lies beneath after a colon (a:x), "
     "decorators in front (d+a), or names to leave out of the automatic choice (^a,b); unset: the best that "
     "can run"},
    {"WEFT_PROVIDER_PATH", "", "folders to search for plug-ins before weft's own, separated by ':'"},
    {"WEFT_DEVICE", "", "interface (eth0) or local address (10.0.0.1) to use; unset: by route"},
    {"WEFT_LOG", "warning", "least level of the lines to log: trace, debug, info, warning, error, off"},
    {"WEFT_PEER_TIMEOUT", "10",
     "time within which a dead peer is noticed: seconds (10, 0.5), or with a unit (500ms, 10s); 100 ms to 1 "
     "h"},
}};

constexpr std::string_view provider_name = entries[0].name;
constexpr std::string_view path_name = entries[1].name;
constexpr std::string_view device_name = entries[2].name;
constexpr std::string_view log_name = entries[3].name;
constexpr std::string_view timeout_name = entries[4].name;

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view allowed) {
  throw Error(
      Status::invalid_argument,
      fmt::format("the environment variable {} is {}; allowed: {}, or unset", name, quoted(value), allowed));
}

std::optional<std::string> non_empty(std::string_view name, std::string_view allowed) {
  std::optional<std::string> found = value(name);
  if (found && found->empty()) refuse(name, *found, allowed);
  return found;
}

// The names of the variables that are set and start with WEFT_.
std::vector<std::string> set_names() {
  std::vector<std::string> names;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.substr(0, prefix.size()) == prefix) names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

// The provider whose prefix the variable carries; of several ("a", "a-b") the longest.
const KnownProvider* owner(std::string_view name, std::span<const KnownProvider> providers) {
  const KnownProvider* longest = nullptr;
  for (const KnownProvider& candidate : providers) {
    if (name.substr(0, candidate.name.size() + prefix.size() + 1) != provider_prefix(candidate.name))
      continue;
    if (longest == nullptr || candidate.name.size() > longest->name.size()) longest = &candidate;
  }
  return longest;
}

// Once per process and variable. Never destroyed, as everything that lives as long as the process.
bool is_first_warning(const std::string& name) {
  static std::mutex& mutex = *new std::mutex;
  static std::set<std::string>& warned = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return warned.insert(name).second;
}

std::vector<std::string> core_names() {
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  return names;
}

}  // namespace

std::span<const Entry> table() noexcept { return entries; }

std::optional<std::string> value(std::string_view name) {
  const char* const found = std::getenv(std::string(name).c_str());
  if (found == nullptr) return {};
  return found;
}

std::optional<std::string> provider_choice() { return value(provider_name); }

std::optional<std::string> device_choice() {
  return non_empty(device_name, "the name of an interface or an address of this host");
}

std::optional<LogLevel> log_level() {
  const auto set = value(log_name);
  if (!set) return {};
  std::vector<std::string> allowed;
  for (const LogLevel level : {LogLevel::trace, LogLevel::debug, LogLevel::info, LogLevel::warning,
                               LogLevel::error, LogLevel::off}) {
    if (*set == to_text(level)) return level;
    allowed.emplace_back(to_text(level));
  }
  refuse(log_name, *set, joined(allowed) + suggestion(*set, allowed));
}

std::optional<std::chrono::milliseconds> peer_timeout() {
  const auto set = value(timeout_name);
  if (!set) return {};
  const auto timeout = parse_duration(*set);
  if (!timeout || *timeout < least_peer_timeout || *timeout > greatest_peer_timeout) {
    refuse(timeout_name, *set,
           "seconds (10, 0.5) or a number with its unit (500ms, 10s), from 100ms to 3600s");
  }
  return timeout;
}

std::vector<std::string> provider_path() {
  // Code is loaded from there: the caller of a setuid program must not choose it.
  const char* const set = ::secure_getenv(std::string(path_name).c_str());
  std::vector<std::string> folders;
  if (set == nullptr) return folders;
  for (const std::string_view part : split(set, ':')) {
    if (!part.empty()) folders.emplace_back(part);
  }
  return folders;
}

std::string provider_prefix(std::string_view provider_name) {
  std::string result(prefix);
  for (const char c : provider_name) {
    const bool is_lower = c >= 'a' && c <= 'z';
    result += is_lower ? static_cast<char>(c - 'a' + 'A') : (c == '-' ? '_' : c);
  }
  return result + '_';
}

void warn_unknown(std::span<const KnownProvider> providers) {
  const std::vector<std::string> core = core_names();
  for (const std::string& name : set_names()) {
    if (std::find(core.begin(), core.end(), name) != core.end()) continue;
    std::vector<std::string> candidates = core;
    std::string reader = "weft";
    if (const KnownProvider* const provider = owner(name, providers)) {
      if (!provider->variables) continue;
      candidates = *provider->variables;
      if (std::find(candidates.begin(), candidates.end(), name) != candidates.end()) continue;
      reader = "provider " + provider->name;
    }
    if (!is_first_warning(name)) continue;
    log(LogLevel::warning, "the environment variable {} is unknown to {} and has no effect{}; known: {}",
        name, reader, suggestion(name, candidates), joined(candidates));
  }
}

}  // namespace weft::core::environment
