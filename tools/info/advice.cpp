#include "advice.hpp"

#include <fmt/format.h>

#include <array>
#include <regex>
#include <sstream>
#include <utility>

#ifndef WEFT_PROVIDER_PACKAGES
#define WEFT_PROVIDER_PACKAGES ""
#endif

namespace info {
namespace {

// Libraries that weft's plug-ins are linked with, by the beginning of their names.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> library_packages{{
    {"libibverbs.so", "libibverbs1 (and ibverbs-providers, which holds the drivers)"},
    {"librdmacm.so", "librdmacm1"},
    {"libfabric.so", "libfabric1"},
    {"libucp.so", "libucx0"},
    {"libuct.so", "libucx0"},
    {"libucs.so", "libucx0"},
    {"libweft.so", "libweft0.1, in the version the plug-in was built for"},
}};

}  // namespace

std::string advice_for_loading(std::string_view reason) {
  // The dynamic loader's words.
  static const std::regex pattern(R"((lib[A-Za-z0-9_+-]+\.so[.0-9]*): cannot open shared object file)");
  std::match_results<std::string_view::const_iterator> found;
  if (!std::regex_search(reason.begin(), reason.end(), found, pattern)) return {};
  const std::string library = found[1];
  for (const auto& [beginning, package] : library_packages) {
    if (library.starts_with(beginning)) return fmt::format("install the Debian package {}", package);
  }
  return fmt::format("find the package that holds {} (apt-file search {}) and install it", library, library);
}

std::vector<std::string> packaged_providers() {
  std::vector<std::string> names;
  std::istringstream list(WEFT_PROVIDER_PACKAGES);
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return names;
}

std::string package_of(std::string_view provider) { return fmt::format("weft-provider-{}", provider); }

}  // namespace info
