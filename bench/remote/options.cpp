#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace perf::remote {
namespace {

std::vector<std::string> split(std::string_view list, char separator) {
  std::vector<std::string> items;
  std::istringstream stream{std::string(list)};
  for (std::string item; std::getline(stream, item, separator);) items.push_back(item);
  return items;
}

}  // namespace

std::uint64_t parse_number(std::string_view text, std::string_view what, std::uint64_t least,
                           std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  std::uint64_t factor = 0;
  if (unit.empty()) factor = 1;
  if (unit == "k" || unit == "K") factor = std::uint64_t{1} << 10;
  if (unit == "m" || unit == "M") factor = std::uint64_t{1} << 20;
  if (unit == "g" || unit == "G") factor = std::uint64_t{1} << 30;
  if (error != std::errc{} || factor == 0 || value > most / factor || value * factor < least) {
    throw std::invalid_argument(fmt::format(
        "{} '{}' is not a whole number from {} to {}; k, M and G may follow it", what, text, least, most));
  }
  return value * factor;
}

std::vector<std::uint64_t> parse_sizes(std::string_view text) {
  const auto size = [](const std::string& one) { return parse_number(one, "size", 0, largest_size); };
  std::vector<std::uint64_t> sizes;
  for (const std::string& part : split(text, ',')) {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos) {
      sizes.push_back(size(part));
      continue;
    }
    const std::uint64_t first = size(part.substr(0, colon));
    const std::uint64_t last = size(part.substr(colon + 1));
    if (first > last) throw std::invalid_argument(fmt::format("the sizes '{}' end before they begin", part));
    std::uint64_t next = first;
    for (; next < last; next = std::max<std::uint64_t>(next * 2, 1)) sizes.push_back(next);
    sizes.push_back(last);
  }
  if (sizes.empty()) throw std::invalid_argument("-s needs a size: 64, or 64,4k, or 8:64k");
  return sizes;
}

bool has_port(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::size_t bracket = address.rfind(']');
  return bracket == std::string_view::npos || colon > bracket;
}

}  // namespace perf::remote
