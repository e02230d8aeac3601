#include "engine_blob.hpp"

#include "wire.hpp"

namespace weft::engine {

namespace {

constexpr std::uint64_t flag_shared = 1;
constexpr std::uint64_t flag_matched = 2;

}  // namespace

void EngineBlob::encode(std::span<std::byte, size> out) const noexcept {
  std::byte* at = wire::store(out.data(), std::uint64_t{1});  // version
  at = wire::store(at, window);
  wire::store(
      at, std::uint64_t{(shared_receives ? flag_shared : 0) | (completes_when_matched ? flag_matched : 0)});
}

std::optional<EngineBlob> EngineBlob::decode(std::span<const std::byte> bytes) noexcept {
  constexpr std::uint64_t most_window = std::uint64_t{1} << 30;
  if (bytes.size() != size || wire::load<std::uint64_t>(bytes.data()) != 1) return std::nullopt;
  EngineBlob blob;
  blob.window = wire::load<std::uint64_t>(bytes.data() + 8);
  const auto flags = wire::load<std::uint64_t>(bytes.data() + 16);
  if (blob.window > most_window || flags > (flag_shared | flag_matched)) return std::nullopt;
  blob.shared_receives = (flags & flag_shared) != 0;
  blob.completes_when_matched = (flags & flag_matched) != 0;
  return blob;
}

}  // namespace weft::engine
