// What came of each test, and how it is told: the matrix and the JSON file.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/discovery.hpp"
#include "harness/test.hpp"

namespace conformance {

enum class Outcome : std::uint8_t { not_run, pass, fail, deviates };

struct Result {
  std::string rule;
  std::string test;
  Setting setting;
  Outcome outcome = Outcome::not_run;
  double seconds = 0;
  std::uint64_t checks = 0;
  std::string detail;
};

[[nodiscard]] const char* to_text(Outcome outcome);

class Results {
 public:
  // A test that is to run; its result stays `not run` until one is given.
  std::size_t expect(Result result);
  [[nodiscard]] Result& at(std::size_t index) { return results_[index]; }
  // Takes out one that the user's filter left out.
  void forget(const std::string& setting, const std::string& test);

  // Rules × provider:fabric, the worst outcome of all tests and thread modes.
  void print_matrix() const;
  void write_json(const std::string& path) const;
  // The matrix as a table, for documents.
  void write_markdown(const std::string& path) const;
  // A test must check the same everywhere: one that passed with fewer obligations than on another provider,
  // without a deviation that tells why, fails.
  void compare_checks();
  // Nothing failed and nothing was left out.
  [[nodiscard]] bool good() const;

 private:
  // The worst outcome of one rule on one provider and fabric, over all tests and thread modes.
  struct Cell {
    Outcome outcome = Outcome::pass;
    int tests = 0;
    int bad = 0;

    [[nodiscard]] std::string text() const;
  };
  struct Matrix {
    std::map<std::string, std::map<std::string, Cell>> rows;  // by rule, then by provider and fabric
    std::set<std::string> columns;
  };
  [[nodiscard]] std::vector<Result> selected() const;
  [[nodiscard]] Matrix matrix() const;

  std::vector<Result> results_;
  std::vector<std::size_t> forgotten_;
};

}  // namespace conformance
