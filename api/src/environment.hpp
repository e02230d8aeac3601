// The one place where the core reads environment variables (SEL-7). A provider reads its own through
// provider::Host.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/log.hpp"
#include "weft/provider/provider.hpp"

namespace weft::core::environment {

struct Entry {
  std::string_view name;
  std::string_view default_value;
  std::string_view meaning;
};

// The core's own variables.
[[nodiscard]] std::span<const Entry> table() noexcept;

// As set now; nothing when unset.
[[nodiscard]] std::optional<std::string> value(std::string_view name);

// The getters throw Error(invalid_argument) that names the variable, its value and what is allowed. A
// variable that is set but empty is refused too: it is more often a script's mistake than a wish.
[[nodiscard]] std::optional<std::string> provider_choice();
[[nodiscard]] std::optional<std::string> device_choice();
[[nodiscard]] std::optional<LogLevel> log_level();
[[nodiscard]] std::optional<std::chrono::milliseconds> peer_timeout();
// Folders; empty parts are ignored, and so is the whole variable in a setuid program.
[[nodiscard]] std::vector<std::string> provider_path();

inline constexpr std::chrono::milliseconds default_peer_timeout{10'000};
inline constexpr std::chrono::milliseconds least_peer_timeout{100};
inline constexpr std::chrono::milliseconds greatest_peer_timeout{3'600'000};

// "WEFT_MY_FABRIC_" for "my-fabric": what a provider's variables start with.
[[nodiscard]] std::string provider_prefix(std::string_view provider_name);

// A provider whose plug-in exists; `variables` once it is loaded.
struct KnownProvider {
  std::string name;
  std::optional<std::vector<std::string>> variables;
};

// Warns once per process and variable about WEFT_ variables that nobody reads. Variables of a provider that
// is not loaded pass in silence.
void warn_unknown(std::span<const KnownProvider> providers);

}  // namespace weft::core::environment
