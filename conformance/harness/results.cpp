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

std::string Results::Cell::text() const {
  if (tests == 0) return to_text(Outcome::not_run);
  const std::string count =
      bad > 0 ? std::to_string(bad) + '/' + std::to_string(tests) : std::to_string(tests);
  return std::string(to_text(outcome)) + ' ' + count;
}

Results::Matrix Results::matrix() const {
  Matrix matrix;
  for (const Result& result : selected()) {
    Cell& cell = matrix.rows[result.rule][result.setting.selector()];
    matrix.columns.insert(result.setting.selector());
    ++cell.tests;
    if (weight(result.outcome) >= weight(Outcome::not_run)) ++cell.bad;
    if (weight(result.outcome) > weight(cell.outcome)) cell.outcome = result.outcome;
  }
  return matrix;
}

void Results::print_matrix() const {
  Matrix matrix = this->matrix();
  const auto& columns = matrix.columns;
  std::map<Outcome, int> totals;
  for (const Result& result : selected()) ++totals[result.outcome];

  constexpr std::size_t rule_width = 8;
  constexpr std::size_t cell_width = 18;
  std::cout << '\n' << padded("rule", rule_width);
  for (const std::string& column : columns) std::cout << padded(column, cell_width);
  std::cout << '\n';
  std::string without_test;
  for (const std::string& rule : contract_rules()) {
    const auto row = matrix.rows.find(rule);
    if (row == matrix.rows.end()) {
      const auto& tests = all_tests();
      const bool has_test =
          std::any_of(tests.begin(), tests.end(), [&](const auto& t) { return t.rule == rule; });
      if (!has_test) without_test += ' ' + rule;
      continue;
    }
    std::cout << padded(rule, rule_width);
    for (const std::string& column : columns) {
      std::cout << padded(row->second[column].text(), cell_width);
    }
    std::cout << '\n';
  }
  if (!without_test.empty()) std::cout << "Rules that have no test here yet:" << without_test << '\n';
  for (const Outcome outcome : {Outcome::pass, Outcome::deviates, Outcome::fail, Outcome::not_run}) {
    std::cout << totals[outcome] << ' ' << to_text(outcome) << (outcome == Outcome::not_run ? "\n" : ", ");
  }
  std::string told;  // the reason that stands above
  for (const Result& result : selected()) {
    if (weight(result.outcome) < weight(Outcome::not_run)) continue;
    if (result.outcome == Outcome::not_run && result.detail != told) {
      told = result.detail;
      std::cout << "not run, because: " << (told.empty() ? "the run ended before" : told) << '\n';
    }
    std::cout << to_text(result.outcome) << "  " << result.setting.text() << '.' << result.test;
    if (result.outcome == Outcome::fail && result.detail.starts_with("only "))
      std::cout << ": " << result.detail;
    std::cout << '\n';
  }
  std::cout.flush();
}

void Results::write_markdown(const std::string& path) const {
  Matrix matrix = this->matrix();
  std::ofstream file(path);
  file << "| rule |";
  for (const std::string& column : matrix.columns) file << ' ' << column << " |";
  file << "\n|---|";
  for (std::size_t i = 0; i < matrix.columns.size(); ++i) file << "---|";
  file << '\n';
  for (const std::string& rule : contract_rules()) {
    const auto row = matrix.rows.find(rule);
    if (row == matrix.rows.end()) continue;
    file << "| " << rule << " |";
    for (const std::string& column : matrix.columns) file << ' ' << row->second[column].text() << " |";
    file << '\n';
  }
  if (!file.flush()) throw std::runtime_error("--markdown: cannot write '" + path + "'");
}

void Results::compare_checks() {
  // The most that was checked, by test and thread mode: what `safe` promises is not promised in `single`.
  std::map<std::pair<std::string, weft::ThreadMode>, const Result*> most;
  for (const Result& result : results_) {
    if (result.outcome != Outcome::pass) continue;
    const Result*& best = most[{result.test, result.setting.threads}];
    if (best == nullptr || result.checks > best->checks) best = &result;
  }
  for (Result& result : results_) {
    if (result.outcome != Outcome::pass) continue;
    const Result& best = *most[{result.test, result.setting.threads}];
    if (result.checks == best.checks) continue;
    result.detail = "only " + std::to_string(result.checks) + " obligations were checked, but " +
                    std::to_string(best.checks) + " on " + best.setting.text() +
                    ", and no deviation tells why";
    result.outcome = Outcome::fail;
  }
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
