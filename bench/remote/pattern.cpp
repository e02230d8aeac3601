#include "pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace perf::remote {
namespace {

constexpr std::uint64_t spread = 0x9e3779b97f4a7c15;  // odd, and its bits look like chance

std::uint64_t seed_of(Author author, std::uint64_t number) {
  return (number + 1) * spread ^ (std::uint64_t{author.endpoint} << 33) ^
         (author.server ? std::uint64_t{1} << 63 : 0);
}

template <typename Byte, typename Action>
void for_each_word(std::span<Byte> bytes, std::uint64_t seed, Action action) {
  for (std::size_t offset = 0; offset < bytes.size(); offset += sizeof seed, seed += spread) {
    action(bytes.subspan(offset, std::min(sizeof seed, bytes.size() - offset)), seed, offset);
  }
}

}  // namespace

void write_pattern(std::span<std::byte> bytes, Author author, std::uint64_t number) {
  for_each_word(bytes, seed_of(author, number),
                [](std::span<std::byte> word, std::uint64_t value, std::size_t) {
                  std::memcpy(word.data(), &value, word.size());
                });
}

void check_pattern(std::span<const std::byte> bytes, Author author, std::uint64_t number) {
  for_each_word(bytes, seed_of(author, number),
                [&](std::span<const std::byte> word, std::uint64_t value, std::size_t offset) {
                  if (std::memcmp(word.data(), &value, word.size()) == 0) [[likely]]
                    return;
                  std::uint64_t found = 0;
                  std::memcpy(&found, word.data(), word.size());
                  throw std::runtime_error(
                      fmt::format("wrong data: message {} of endpoint {}, {} bytes: at byte {} there is "
                                  "{:#018x} instead of {:#018x}",
                                  number, author.endpoint, bytes.size(), offset, found, value));
                });
}

}  // namespace perf::remote
