#include "credit.hpp"

namespace weft::engine {

// Counts only grow, and by no more than can be outstanding.
bool SendCredit::take_update(std::uint64_t now_returned, const wire::UpdateExtension& update) noexcept {
  constexpr std::uint64_t most_grants = 1U << 17;
  if (update.zero != 0 || update.granted < granted || update.granted > messages_framed + most_grants ||
      update.acknowledged - acknowledged > requests_framed - acknowledged || now_returned < returned ||
      now_returned > charged) {
    return false;
  }
  constexpr std::uint64_t many_grants = 32;
  if (update.granted != granted && !grants_singly) granted_in_bulk = update.granted - granted >= many_grants;
  granted = update.granted;
  acknowledged = update.acknowledged;
  returned = now_returned;
  return true;
}

}  // namespace weft::engine
