// What the client and the server of weft-perf tell each other: small JSON texts, as private data of
// connections and as messages. All of it is checked, because anybody may connect.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <weft/weft.hpp>

#include "row.hpp"

namespace perf::remote {

using Json = nlohmann::json;

/// Raised whenever the meaning of anything sent changes.
inline constexpr int wire_version = 1;

/// The first word of a client: who it is and how the server should open its provider.
struct Hello {
  weft::ThreadMode threads = weft::ThreadMode::safe;
};

/// How much is done in one go.
struct Amount {
  std::uint64_t operations = 0;  ///< 0: until the time is over.
  double seconds = 0;
};

/// A text that does not mean what it should.
class Unintelligible : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[nodiscard]] std::string hello_text(const Hello& hello);
/// Throw Unintelligible; the text says what is wrong, for the one who sent it.
[[nodiscard]] Hello parse_hello(std::span<const std::byte> bytes);

/// What the client connects a row's control endpoint with; `key` is of the client's own memory.
[[nodiscard]] std::string row_text(const Row& row, const std::string& token, std::span<const std::byte> key);
[[nodiscard]] Row parse_row(const Json& json);

[[nodiscard]] Json amount_json(const Amount& amount);
[[nodiscard]] Amount parse_amount(const Json& json);

/// An object in JSON of the right version; everything but the hello is read by this first.
[[nodiscard]] Json parse_object(std::span<const std::byte> bytes);

/// Members of an object, of the type and in the range asked for.
[[nodiscard]] std::uint64_t number_of(const Json& object, const char* name, std::uint64_t largest);
[[nodiscard]] double real_of(const Json& object, const char* name, double largest);
[[nodiscard]] bool flag_of(const Json& object, const char* name);
[[nodiscard]] std::string text_of(const Json& object, const char* name);

[[nodiscard]] std::string hexadecimal(std::span<const std::byte> bytes);
[[nodiscard]] std::vector<std::byte> from_hexadecimal(std::string_view text);

[[nodiscard]] inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// A text from the peer, with nothing in it that a terminal would obey, and not endless.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace perf::remote
