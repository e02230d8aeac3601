// The command lines of `weft-perf client` and `weft-perf server`.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <weft/weft.hpp>

#include "row.hpp"
#include "wire.hpp"

namespace perf::remote {

inline constexpr const char* default_port = "7471";

struct ClientOptions {
  std::string server;  ///< HOST:PORT
  std::string provider;
  std::string device;
  weft::ThreadMode threads = weft::ThreadMode::safe;
  std::vector<Row> rows;
  Amount amount;                         ///< Of each row.
  std::optional<std::uint64_t> warm_up;  ///< Operations before the clock runs; empty: chosen by size.
  std::uint64_t memory_limit = 0;        ///< Bytes.
  bool histogram = false;
  std::string json_file;
  std::string csv_file;
};

struct ServerOptions {
  std::string address;  ///< HOST:PORT, the host may be empty
  std::string provider;
  std::string device;
  std::uint16_t data_port = 0;
  std::uint64_t memory_limit = 0;
  std::chrono::seconds patience{60};  ///< With a row that should be over.
  bool once = false;
};

/// Nothing when only help was asked for (it has been printed). Throw std::exception types with a sentence to
/// show for anything wrong.
[[nodiscard]] std::optional<ClientOptions> parse_client_options(const std::vector<std::string>& arguments);
[[nodiscard]] std::optional<ServerOptions> parse_server_options(const std::vector<std::string>& arguments);

/// Whether an address ends with a port: "host:1", "[::1]:1", but not "[::1]".
[[nodiscard]] bool has_port(std::string_view address);

/// "8", "4k", "1M": a whole number. Throws std::invalid_argument naming `what`.
[[nodiscard]] std::uint64_t parse_number(std::string_view text, std::string_view what, std::uint64_t least,
                                         std::uint64_t most);
/// "8", "64,4096", "8:64k" (that and every doubling up to it), or a list of such.
[[nodiscard]] std::vector<std::uint64_t> parse_sizes(std::string_view text);

}  // namespace perf::remote
