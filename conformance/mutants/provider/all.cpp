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
    add_contract_posting(*list);
    add_contract_messages(*list);
    add_contract_operations(*list);
    add_contract_limits(*list);
    add_contract_order(*list);
    add_contract_completions(*list);
    add_contract_buffers(*list);
    add_contract_sharing(*list);
    add_contract_threads(*list);
    add_contract_memory(*list);
    add_contract_keys(*list);
    add_contract_regions(*list);
    add_contract_errors(*list);
    add_contract_endings(*list);
    add_contract_progress(*list);
    add_contract_connecting(*list);
    return list;
  }();
  return *mutants;
}

}  // namespace mutants
