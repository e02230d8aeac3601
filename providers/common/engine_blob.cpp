#include "engine_blob.hpp"

#include "wire.hpp"

namespace weft::engine {

void EngineBlob::encode(std::span<std::byte, size> out) const noexcept {
  std::byte* at = wire::store(out.data(), std::uint64_t{1});  // version
  at = wire::store(at, window);
  wire::store(at, std::uint64_t{shared_receives ? 1U : 0U});
}

std::optional<EngineBlob> EngineBlob::decode(std::span<const std::byte> bytes) noexcept {
  constexpr std::uint64_t most_window = std::uint64_t{1} << 30;
  if (bytes.size() != size || wire::load<std::uint64_t>(bytes.data()) != 1) return std::nullopt;
  EngineBlob blob;
  blob.window = wire::load<std::uint64_t>(bytes.data() + 8);
  const auto shared = wire::load<std::uint64_t>(bytes.data() + 16);
  if (blob.window > most_window || shared > 1) return std::nullopt;
  blob.shared_receives = shared == 1;
  return blob;
}

}  // namespace weft::engine
