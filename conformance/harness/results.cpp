#include "harness/results.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "harness/rules.hpp"

namespace conformance {
namespace {

// Which of two outcomes of one rule the matrix shows.
int weight(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      return 0;
    case Outcome::deviates:
      return 1;
    case Outcome::not_run:
      return 2;
    case Outcome::fail:
      return 3;
  }
  return 3;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

}  // namespace

const char* to_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      return "pass";
    case Outcome::fail:
      return "FAIL";
    case Outcome::deviates:
      return "deviates";
    case Outcome::not_run:
      return "not run";
  }
  return "not run";
}

std::size_t Results::expect(Result result) {
  results_.push_back(std::move(result));
  return results_.size() - 1;
}

void Results::forget(const std::string& setting, const std::string& test) {
  for (std::size_t i = 0; i < results_.size(); ++i) {
    if (results_[i].test == test && results_[i].setting.text() == setting) forgotten_.push_back(i);
  }
}

std::vector<Result> Results::selected() const {
  std::vector<Result> selected;
  for (std::size_t i = 0; i < results_.size(); ++i) {
    if (std::find(forgotten_.begin(), forgotten_.end(), i) == forgotten_.end())
      selected.push_back(results_[i]);
  }
  return selected;
}

bool Results::good() const {
  const auto selected = this->selected();
  return !selected.empty() && std::all_of(selected.begin(), selected.end(), [](const Result& result) {
    return result.outcome == Outcome::pass || result.outcome == Outcome::deviates;
  });
}

void Results::print_matrix() const {
  struct Cell {
    Outcome outcome = Outcome::pass;
    int tests = 0;
    int bad = 0;
  };
  std::map<std::string, std::map<std::string, Cell>> matrix;
  std::set<std::string> columns;
  std::map<Outcome, int> totals;
  for (const Result& result : selected()) {
    Cell& cell = matrix[result.rule][result.setting.selector()];
    columns.insert(result.setting.selector());
    ++cell.tests;
    ++totals[result.outcome];
    if (weight(result.outcome) >= weight(Outcome::not_run)) ++cell.bad;
    if (weight(result.outcome) > weight(cell.outcome)) cell.outcome = result.outcome;
  }

  constexpr std::size_t rule_width = 8;
  constexpr std::size_t cell_width = 18;
  std::cout << '\n' << padded("rule", rule_width);
  for (const std::string& column : columns) std::cout << padded(column, cell_width);
  std::cout << '\n';
  std::string without_test;
  for (const std::string& rule : contract_rules()) {
    const auto row = matrix.find(rule);
    if (row == matrix.end()) {
      const auto& tests = all_tests();
      const bool has_test =
          std::any_of(tests.begin(), tests.end(), [&](const auto& t) { return t.rule == rule; });
      if (!has_test) without_test += ' ' + rule;
      continue;
    }
    std::cout << padded(rule, rule_width);
    for (const std::string& column : columns) {
      const Cell& cell = row->second[column];
      std::string text = cell.tests == 0 ? "not run" : to_text(cell.outcome);
      text += cell.bad > 0 ? " " + std::to_string(cell.bad) + "/" + std::to_string(cell.tests)
                           : " " + std::to_string(cell.tests);
      std::cout << padded(text, cell_width);
    }
    std::cout << '\n';
  }
  if (!without_test.empty()) std::cout << "Rules that have no test here yet:" << without_test << '\n';
  for (const Outcome outcome : {Outcome::pass, Outcome::deviates, Outcome::fail, Outcome::not_run}) {
    std::cout << totals[outcome] << ' ' << to_text(outcome) << (outcome == Outcome::not_run ? "\n" : ", ");
  }
  for (const Result& result : selected()) {
    if (weight(result.outcome) >= weight(Outcome::not_run)) {
      std::cout << to_text(result.outcome) << "  " << result.setting.text() << '.' << result.test << '\n';
    }
  }
  std::cout.flush();
}

void Results::write_json(const std::string& path) const {
  nlohmann::json out{{"results", nlohmann::json::array()}};
  for (const Result& result : selected()) {
    out["results"].push_back(
        {{"rule", result.rule},
         {"test", result.test},
         {"provider", result.setting.provider},
         {"fabric", result.setting.fabric},
         {"threads", result.setting.threads == weft::ThreadMode::single ? "single" : "safe"},
         {"outcome", to_text(result.outcome)},
         {"seconds", result.seconds},
         {"checks", result.checks},
         {"detail", result.detail}});
  }
  std::ofstream file(path);
  file << out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  if (!file.flush()) throw std::runtime_error("--json: cannot write '" + path + "'");
}

}  // namespace conformance
