// What the core offers to one provider.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/provider/provider.hpp"

namespace weft::core {

class ProviderHost final : public provider::Host {
 public:
  ProviderHost(std::string provider_name, std::vector<std::string> variables)
      : provider_name_(std::move(provider_name)), variables_(std::move(variables)) {}

  void log(LogLevel level, std::string_view line) noexcept override;
  [[nodiscard]] bool logs(LogLevel level) const noexcept override;
  // Throws Error(invalid_argument) for a variable that the provider does not list: what is read must be
  // listed (SEL-7).
  [[nodiscard]] std::optional<std::string> variable(std::string_view full_name) const override;
  void random_bytes(std::span<std::byte> out) const override { fill_random(out); }

  [[nodiscard]] const std::vector<std::string>& variables() const noexcept { return variables_; }

  // For the core's own tokens. Throws Error(system_error).
  static void fill_random(std::span<std::byte> out);

 private:
  std::string provider_name_;
  std::vector<std::string> variables_;
};

}  // namespace weft::core
