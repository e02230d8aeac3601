// The client's connection to a server, over which any number of rows are run.
#pragma once

#include <cstdint>
#include <string>
#include <weft/weft.hpp>

#include "options.hpp"
#include "result.hpp"

namespace perf::remote {

class Session {
 public:
  /// Connects. Throws std::runtime_error with what is wrong and what to do.
  explicit Session(const ClientOptions& options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  [[nodiscard]] const Sides& sides() const { return sides_; }
  [[nodiscard]] Result run(const Row& row);

 private:
  void read_answer();
  [[nodiscard]] weft::Endpoint connect_row(Site& site, const Row& row);

  const ClientOptions& options_;
  weft::Context context_;
  weft::CompletionQueue queue_;
  weft::Endpoint endpoint_;
  std::string data_address_;
  std::string token_;
  Sides sides_;
};

}  // namespace perf::remote
