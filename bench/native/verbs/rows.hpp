// The result as JSON rows, one line each.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "work.hpp"

namespace weft::native {

class Rows {
 public:
  explicit Rows(std::string fabric) : fabric_(std::move(fabric)) {}

  // Adds the rows of one piece of work: two for latency (median and 99th percentile), one otherwise.
  void add(const Work& work, const std::vector<Measured>& runs);
  void write(std::ostream& out) const;

 private:
  void add_row(const Work& work, const char* metric, const std::vector<double>& values,
               const Measured& counts);

  std::string fabric_;
  std::vector<std::string> lines_;
};

// The value below which `fraction` of `values` lie (nearest rank). `values` is not empty.
double quantile(std::vector<double> values, double fraction);

}  // namespace weft::native
