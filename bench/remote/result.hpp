// What a row came to, and how it is shown.
#pragma once

#include <string>
#include <vector>

#include "phase.hpp"
#include "row.hpp"

namespace perf::remote {

/// Who measured with whom.
struct Sides {
  std::string provider;
  std::string fabric;
  std::string client_device;
  std::string client_address;
  std::string server_device;
  std::string server_address;
  std::string server_version;
  std::string threads;
};

struct Result {
  Row row;
  PhaseResult measured;

  [[nodiscard]] std::uint64_t operations() const {
    return measured.client.operations + measured.server.operations;
  }
  /// Per second, both directions together.
  [[nodiscard]] double rate() const;
};

[[nodiscard]] std::string heading(const Sides& sides, const Row& first);
/// The names of the columns for rows of this test.
[[nodiscard]] std::string table_header(Test test);
[[nodiscard]] std::string table_row(const Result& result);
[[nodiscard]] std::string histogram_text(const Histogram& latencies);

[[nodiscard]] std::string json_text(const Sides& sides, const std::vector<Result>& results);
[[nodiscard]] std::string csv_text(const Sides& sides, const std::vector<Result>& results);

/// '-' is standard output. Throws std::runtime_error naming the file.
void write_file(const std::string& file, const std::string& text);

}  // namespace perf::remote
