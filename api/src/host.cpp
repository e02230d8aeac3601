#include "host.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "environment.hpp"
#include "log.hpp"
#include "text.hpp"
#include "weft/status.hpp"

namespace weft::core {

void ProviderHost::log(LogLevel level, std::string_view line) noexcept {
  core::log(level, "{}: {}", provider_name_, line);
}

bool ProviderHost::logs(LogLevel level) const noexcept { return core::logs(level); }

std::optional<std::string> ProviderHost::variable(std::string_view full_name) const {
  if (std::find(variables_.begin(), variables_.end(), full_name) == variables_.end()) {
    throw Error(Status::invalid_argument,
                fmt::format("provider {} reads the environment variable {} without listing it; add it to "
                            "Provider::variables() (it lists: {})",
                            provider_name_, quoted(full_name), joined(variables_)));
  }
  return environment::value(full_name);
}

void ProviderHost::fill_random(std::span<std::byte> out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t got = ::getrandom(out.data() + filled, out.size() - filled, 0);
    if (got > 0) {
      filled += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      throw Error(Status::system_error,
                  fmt::format("cannot get {} random bytes from the system (getrandom): {}", out.size(),
                              system_text(errno)));
    }
  }
}

}  // namespace weft::core
