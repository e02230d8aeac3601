#include "worker_address.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace weft::ucx {

namespace {

// Address version 1: a header of version (lower half) and flags, the worker's number, then devices, each with
// its transports. The last of each kind is marked.
constexpr std::size_t number_size = 8;
constexpr auto last_mark = std::byte{0x80};
constexpr auto empty_mark = std::byte{0x80};  // beside the memory domain: no transport follows
constexpr auto paths_mark = std::byte{0x40};
constexpr auto system_mark = std::byte{0x20};
constexpr auto device_length = std::byte{0x1f};
constexpr auto endpoints_mark = std::byte{0x40};  // addresses of endpoints follow; never in a worker's
constexpr auto interface_length = std::byte{0x3f};
constexpr auto version_mask = std::byte{0x0f};
constexpr auto number_flag = std::byte{0x20};
constexpr auto accepted_flags = std::byte{0xa0};  // the worker's number, and lanes for messages only
constexpr std::size_t most_entries = 64;
constexpr unsigned most_domain = 31;
constexpr std::uint32_t priority_mask = 0xff;  // in the capabilities word

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
  // Empty when so much is not there; from then on nothing is.
  [[nodiscard]] std::span<const std::byte> take(std::size_t length) noexcept {
    if (length > bytes_.size()) {
      good_ = false;
      bytes_ = {};
      return {};
    }
    const auto taken = bytes_.first(length);
    bytes_ = bytes_.subspan(length);
    return taken;
  }
  template <class Value>
  [[nodiscard]] Value value() noexcept {
    Value value{};
    if (const auto bytes = take(sizeof value); !bytes.empty())
      std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  void skip(std::size_t length) noexcept { static_cast<void>(take(length)); }
  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] bool at_end() const noexcept { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool good_ = true;
};

[[nodiscard]] bool has(std::byte flags, std::byte flag) noexcept { return (flags & flag) != std::byte{0}; }

[[nodiscard]] std::vector<std::byte> copy(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

// By these numbers UCX compares lanes; it relies on none being negative or out of reason.
[[nodiscard]] bool skip_speeds(Reader& reader) noexcept {
  constexpr float longest = 1.0F;   // seconds
  constexpr float fastest = 1e15F;  // bytes in one
  const auto overhead = reader.value<float>();
  const auto bandwidth = reader.value<float>();
  const auto latency = reader.value<float>();
  return overhead >= 0 && overhead <= longest && bandwidth >= 0 && bandwidth <= fastest && latency >= 0 &&
         latency <= longest;
}

bool parse_transports(Reader& reader, std::span<const std::byte> device, std::vector<AddressEntry>& out) {
  while (true) {
    AddressEntry entry;
    entry.transport = reader.value<std::uint16_t>();
    if (!skip_speeds(reader)) return false;
    entry.capabilities = reader.value<std::uint32_t>();
    const auto flags = reader.value<std::byte>();
    entry.device = copy(device);
    entry.interface = copy(reader.take(std::to_integer<std::size_t>(flags & interface_length)));
    if (!reader.good() || has(flags, endpoints_mark) || out.size() == most_entries) return false;
    out.push_back(std::move(entry));
    if (has(flags, last_mark)) return true;
  }
}

// A device of TCP is told by flags and family, then an IP address or, for loopback, the host's number, which
// UCX only compares. Other devices name a host and perhaps a namespace of it, which it compares too.
[[nodiscard]] bool same_kind(const AddressEntry& own, const AddressEntry& peer) noexcept {
  constexpr std::size_t head = 2;
  constexpr std::size_t short_size = head + sizeof(in_addr);
  constexpr std::size_t long_size = head + sizeof(in6_addr);
  constexpr std::size_t host_size = 8;
  constexpr std::size_t namespace_size = 12;
  const std::size_t size = own.device.size();
  if (own.transport != peer.transport || own.interface.size() != peer.interface.size() ||
      (own.capabilities & ~priority_mask) != (peer.capabilities & ~priority_mask)) {
    return false;
  }
  if (own.device == peer.device) return true;
  if (size == host_size || size == namespace_size)
    return peer.device.size() == host_size || peer.device.size() == namespace_size;
  if (size != peer.device.size()) return false;
  return (size == short_size || size == long_size) &&
         std::equal(own.device.begin(), own.device.begin() + head, peer.device.begin());
}

}  // namespace

bool WorkerAddress::parse(std::span<const std::byte> bytes, WorkerAddress& out) {
  Reader reader(bytes);
  out.entries.clear();
  out.header = reader.value<std::byte>();
  if ((out.header & version_mask) != std::byte{0} || has(out.header, ~(version_mask | accepted_flags)) ||
      !has(out.header, number_flag)) {
    return false;
  }
  reader.skip(number_size);
  while (reader.good()) {
    const auto domain = reader.value<std::byte>();
    const auto flags = reader.value<std::byte>();
    const bool empty = has(domain, empty_mark);
    if (has(flags, paths_mark)) reader.skip(1);
    if (has(flags, system_mark)) reader.skip(1);
    const auto device = reader.take(std::to_integer<std::size_t>(flags & device_length));
    if (!reader.good()) return false;
    if (!empty && std::to_integer<unsigned>(domain & ~std::byte{0x60}) > most_domain) return false;
    if (!empty && !parse_transports(reader, device, out.entries)) return false;
    if (has(flags, last_mark)) return reader.good() && reader.at_end() && !out.entries.empty();
  }
  return false;
}

std::string why_not(std::span<const std::byte> own, std::span<const std::byte> peer) {
  WorkerAddress ours;
  WorkerAddress theirs;
  if (!WorkerAddress::parse(own, ours)) return "this UCX writes addresses of a form that is not known here";
  if (!WorkerAddress::parse(peer, theirs) || theirs.header != ours.header)
    return "the peer's address is not one of a UCX worker, or of a UCX too different from this one";
  for (const AddressEntry& entry : theirs.entries) {
    const bool known = std::any_of(ours.entries.begin(), ours.entries.end(),
                                   [&entry](const AddressEntry& one) { return same_kind(one, entry); });
    if (!known) return "the peer's address names a transport or a device that this side does not know";
  }
  return {};
}

bool elsewhere(std::span<const std::byte> own, std::span<const std::byte> peer) {
  WorkerAddress ours;
  WorkerAddress theirs;
  if (!WorkerAddress::parse(own, ours) || !WorkerAddress::parse(peer, theirs)) return false;
  const auto differs = [&ours](const AddressEntry& entry) {
    return std::any_of(ours.entries.begin(), ours.entries.end(), [&entry](const AddressEntry& one) {
      return one.transport == entry.transport && one.device != entry.device;
    });
  };
  return std::any_of(theirs.entries.begin(), theirs.entries.end(), differs);
}

}  // namespace weft::ucx
