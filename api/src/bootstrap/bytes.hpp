// Little-endian encoding and decoding with every range checked (SEC-1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace weft::core {

class ByteWriter {
 public:
  template <typename Integer>
  requires std::is_integral_v<Integer>
  void integer(Integer value) {
    auto rest = static_cast<std::make_unsigned_t<Integer>>(value);
    for (std::size_t i = 0; i < sizeof(Integer); ++i) {
      bytes_.push_back(static_cast<std::byte>(rest & 0xff));
      if constexpr (sizeof(Integer) > 1) rest = static_cast<decltype(rest)>(rest >> 8);
    }
  }
  void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  // With its length in 16 bits in front. What is longer than `limit` is cut.
  void text(std::string_view text, std::size_t limit) {
    text = text.substr(0, limit);
    integer(static_cast<std::uint16_t>(text.size()));
    raw(std::as_bytes(std::span(text.data(), text.size())));
  }
  void blob(std::span<const std::byte> bytes) {
    integer(static_cast<std::uint16_t>(bytes.size()));
    raw(bytes);
  }

  [[nodiscard]] std::vector<std::byte>& bytes() noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Reads in the order written. The first thing that does not fit makes the reader bad for good; what is read
// from then on is zero or empty.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

  template <typename Integer>
  requires std::is_integral_v<Integer>
  [[nodiscard]] Integer integer() noexcept {
    const auto bytes = take(sizeof(Integer));
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i > 0; --i)
      value = value << 8 | std::to_integer<std::uint64_t>(bytes[i - 1]);
    return static_cast<Integer>(value);
  }
  template <std::size_t size>
  [[nodiscard]] std::array<std::byte, size> array() noexcept {
    std::array<std::byte, size> out{};
    const auto bytes = take(size);
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), size);
    return out;
  }
  [[nodiscard]] std::vector<std::byte> blob(std::size_t limit) {
    const auto bytes = sized(limit);
    return {bytes.begin(), bytes.end()};
  }
  // What a peer calls text goes into log lines and messages: anything but printable ASCII becomes '?'
  // (SEC-1).
  [[nodiscard]] std::string text(std::size_t limit) {
    const auto bytes = sized(limit);
    std::string out(bytes.size(), '?');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const char letter = std::to_integer<char>(bytes[i]);
      if (letter >= ' ' && letter <= '~') out[i] = letter;
    }
    return out;
  }

  void fail() noexcept {
    bad_ = true;
    rest_ = {};
  }
  [[nodiscard]] bool bad() const noexcept { return bad_; }
  // Everything was right and nothing is left.
  [[nodiscard]] bool complete() const noexcept { return !bad_ && rest_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t count) noexcept {
    if (count > rest_.size()) {
      fail();
      return {};
    }
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  std::span<const std::byte> sized(std::size_t limit) noexcept {
    const auto size = integer<std::uint16_t>();
    if (size > limit) {
      fail();
      return {};
    }
    return take(size);
  }

  std::span<const std::byte> rest_;
  bool bad_ = false;
};

}  // namespace weft::core
