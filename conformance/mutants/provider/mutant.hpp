// The mutants by name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "behaviour.hpp"

namespace mutants {

enum class Strength : std::uint8_t {
  always,
  rare,   // once in so many occasions
  corner  // under special conditions only, which it knows itself
};

struct Mutant {
  std::string name;  // "lost-completion"
  std::string rule;  // the rule whose tests must find it: "CMP-1"
  Strength strength = Strength::always;
  std::string tests;  // which tests of the rule are run: a part of their names; empty: all
  std::string says;   // what the failure says; empty: any failed check
  std::function<std::unique_ptr<Behaviour>()> make;
  std::vector<std::string> spares{};  // bystanders that it rightly breaks as well, by a part of their names
  std::uint64_t one_in = 1;
  // Not the provider is wrong, but what the core gets from the C library: see mutants/beneath.
  bool beneath = false;
  // Written from the contract's text alone, before looking at the tests of its rule.
  bool from_contract = false;
};

// All, in the order of the contract.
[[nodiscard]] const std::vector<Mutant>& all_mutants();

// The sections, each in a file of its own.
void add_operations(std::vector<Mutant>& mutants);
void add_order(std::vector<Mutant>& mutants);
void add_completions(std::vector<Mutant>& mutants);
void add_ends(std::vector<Mutant>& mutants);
void add_memory(std::vector<Mutant>& mutants);
void add_progress_and_the_rest(std::vector<Mutant>& mutants);
void add_core(std::vector<Mutant>& mutants);
void add_from_the_contract(std::vector<Mutant>& mutants);
void add_contract_posting(std::vector<Mutant>& mutants);
void add_contract_messages(std::vector<Mutant>& mutants);
void add_contract_operations(std::vector<Mutant>& mutants);
void add_contract_limits(std::vector<Mutant>& mutants);
void add_contract_order(std::vector<Mutant>& mutants);
void add_contract_completions(std::vector<Mutant>& mutants);
void add_contract_buffers(std::vector<Mutant>& mutants);
void add_contract_sharing(std::vector<Mutant>& mutants);
void add_contract_threads(std::vector<Mutant>& mutants);
void add_contract_memory(std::vector<Mutant>& mutants);
void add_contract_keys(std::vector<Mutant>& mutants);
void add_contract_regions(std::vector<Mutant>& mutants);
void add_contract_errors(std::vector<Mutant>& mutants);
void add_contract_endings(std::vector<Mutant>& mutants);
void add_contract_progress(std::vector<Mutant>& mutants);
void add_contract_connecting(std::vector<Mutant>& mutants);

// For the tables.
[[nodiscard]] inline auto entry(OnEntry::Edit edit) {
  return [edit] { return std::make_unique<OnEntry>(edit); };
}
[[nodiscard]] inline auto request(OnRequest::Edit edit) {
  return [edit] { return std::make_unique<OnRequest>(edit); };
}
[[nodiscard]] inline auto on_post(OnPost::Answer answer) {
  return [answer] { return std::make_unique<OnPost>(answer); };
}
[[nodiscard]] inline auto answer(OnAnswer::Edit edit) {
  return [edit] { return std::make_unique<OnAnswer>(edit); };
}
template <class Kind>
[[nodiscard]] auto made() {
  return [] { return std::make_unique<Kind>(); };
}

}  // namespace mutants
