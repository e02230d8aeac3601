#include "work.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace weft::native {
namespace {

constexpr std::array<std::pair<std::string_view, Operation>, 5> operation_names{{
    {"send", Operation::send},
    {"write", Operation::write},
    {"read", Operation::read},
    {"write_with_immediate", Operation::write_with_immediate},
    {"fetch_add", Operation::fetch_add},
}};

constexpr std::array<std::pair<std::string_view, Kind>, 3> kind_names{{
    {"latency", Kind::latency},
    {"rate", Kind::rate},
    {"bandwidth", Kind::bandwidth},
}};

template <typename Names>
auto find_by_name(const Names& names, std::string_view wanted, const char* what) {
  for (const auto& [name, value] : names) {
    if (name == wanted) return value;
  }
  std::string known;
  for (const auto& entry : names) known.append(" ").append(entry.first);
  throw std::invalid_argument("unknown " + std::string(what) + " '" + std::string(wanted) +
                              "'; known:" + known);
}

}  // namespace

Operation parse_operation(std::string_view name) { return find_by_name(operation_names, name, "operation"); }

Kind parse_kind(std::string_view name) { return find_by_name(kind_names, name, "kind of measurement"); }

std::string_view name_of(Operation operation) {
  for (const auto& [name, value] : operation_names) {
    if (value == operation) return name;
  }
  return "?";
}

std::uint32_t Work::queue_depth() const { return kind == Kind::latency ? std::max(depth, 128U) : depth; }

std::uint32_t Work::signal_interval() const { return std::clamp(queue_depth() / 4, 1U, 64U); }

}  // namespace weft::native
