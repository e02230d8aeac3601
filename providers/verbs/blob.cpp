#include "blob.hpp"

#include <infiniband/verbs.h>

#include <algorithm>

#include "common/wire.hpp"

namespace weft::verbs {

namespace wire = engine::wire;

namespace {

constexpr std::uint32_t blob_magic = 0x42565457;  // "WTVB"
constexpr std::uint32_t blob_version = 1;
constexpr std::uint32_t number_limit = 1U << 24;
constexpr std::uint32_t most_reads = 255;
constexpr std::uint64_t longest_timer = 31;

}  // namespace

void Blob::encode(std::span<std::byte, size> out) const noexcept {
  std::byte* at = wire::store(out.data(), blob_magic);
  at = wire::store(at, blob_version);
  at = wire::store(at, pair_number);
  at = wire::store(at, first_packet);
  at = std::copy(gid.begin(), gid.end(), at);
  at = wire::store(at, lid);
  at = wire::store(at, mtu);
  at = wire::store(at, static_cast<std::uint8_t>(ethernet ? 1 : 0));
  at = wire::store(at, reads_out);
  at = wire::store(at, reads_in);
  at = wire::store(at, flush_key);
  at = wire::store(at, flush_address);
  wire::store(at, std::uint64_t{acknowledge});
}

std::optional<Blob> Blob::decode(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() != size) return std::nullopt;
  const std::byte* at = bytes.data();
  if (wire::load<std::uint32_t>(at) != blob_magic || wire::load<std::uint32_t>(at + 4) != blob_version)
    return std::nullopt;
  Blob blob;
  blob.pair_number = wire::load<std::uint32_t>(at + 8);
  blob.first_packet = wire::load<std::uint32_t>(at + 12);
  std::copy_n(at + 16, blob.gid.size(), blob.gid.begin());
  blob.lid = wire::load<std::uint16_t>(at + 32);
  blob.mtu = wire::load<std::uint8_t>(at + 34);
  const auto ethernet = wire::load<std::uint8_t>(at + 35);
  blob.reads_out = wire::load<std::uint32_t>(at + 36);
  blob.reads_in = wire::load<std::uint32_t>(at + 40);
  blob.flush_key = wire::load<std::uint32_t>(at + 44);
  blob.flush_address = wire::load<std::uint64_t>(at + 48);
  const bool sound = blob.pair_number != 0 && blob.pair_number < number_limit &&
                     blob.first_packet < number_limit && blob.mtu >= IBV_MTU_256 &&
                     blob.mtu <= IBV_MTU_4096 && ethernet <= 1 && blob.reads_out >= 1 &&
                     blob.reads_out <= most_reads && blob.reads_in >= 1 && blob.reads_in <= most_reads &&
                     blob.flush_address <= UINT64_MAX - sizeof(std::uint64_t) &&
                     wire::load<std::uint64_t>(at + 56) <= longest_timer;
  if (!sound) return std::nullopt;
  blob.ethernet = ethernet == 1;
  blob.acknowledge = static_cast<std::uint8_t>(wire::load<std::uint64_t>(at + 56));
  return blob;
}

}  // namespace weft::verbs
