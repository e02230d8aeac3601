#include "mutant.hpp"

namespace mutants {

const std::vector<Mutant>& all_mutants() {
  static const auto* const mutants = [] {
    auto* list = new std::vector<Mutant>;
    add_operations(*list);
    add_order(*list);
    add_completions(*list);
    add_ends(*list);
    add_memory(*list);
    add_progress_and_the_rest(*list);
    add_core(*list);
    add_from_the_contract(*list);
    return list;
  }();
  return *mutants;
}

}  // namespace mutants
