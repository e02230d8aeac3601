#include "bootstrap/compatibility.hpp"

#include <algorithm>

#include "objects/context_core.hpp"
#include "plugin_loader.hpp"
#include "text.hpp"

namespace weft::core {

namespace {

std::string range(std::uint16_t lowest, std::uint16_t highest) {
  if (lowest == highest) return std::to_string(lowest);
  return std::to_string(lowest) + " to " + std::to_string(highest);
}

std::string described(const wire::Hello& side) {
  return quoted(side.provider) + " (version " + one_line(side.provider_version) + ", protocol " +
         range(side.protocol.lowest, side.protocol.highest) + ")";
}

// Without the decorators in front, which may differ between the sides.
std::string_view innermost(std::string_view provider) {
  return provider.substr(provider.rfind('+') + 1);  // npos + 1 is 0
}

std::string common_providers(const wire::Hello& mine, const wire::Hello& theirs) {
  std::vector<std::string> common;
  for (const std::string& name : mine.available) {
    if (std::find(theirs.available.begin(), theirs.available.end(), name) != theirs.available.end()) {
      common.push_back(name);
    }
  }
  return joined(common);
}

}  // namespace

wire::Hello introduction(ContextCore& context) {
  wire::Hello hello;
  hello.context = context.id();
  hello.provider = context.provider_name();
  hello.provider_version = context.provider_version();
  hello.protocol = context.provider().protocol();
  hello.available = context.available_providers();
  hello.keeps_connection = context.provider().keeps_connection();
  return hello;
}

wire::Bytes checked_blob(provider::Endpoint& endpoint, const SocketAddress& local,
                         const SocketAddress& peer) {
  wire::Bytes blob = endpoint.blob({.local = local.bytes(), .peer = peer.bytes()});
  if (blob.size() > wire::max_blob) {
    throw Error(Status::system_error, "the provider's address is " + std::to_string(blob.size()) +
                                          " bytes long; the interface allows " +
                                          std::to_string(wire::max_blob));
  }
  return blob;
}

std::optional<std::string> preamble_conflict(const wire::Preamble& theirs) {
  if (theirs.byte_order != wire::host_byte_order()) {
    return "the two hosts have different byte orders, which weft does not bridge";
  }
  if (theirs.lowest > theirs.highest || theirs.highest < wire::lowest_version ||
      theirs.lowest > wire::highest_version) {
    return "the dialing side speaks version " + range(theirs.lowest, theirs.highest) +
           " of weft's handshake, this side version " + range(wire::lowest_version, wire::highest_version);
  }
  return std::nullopt;
}

std::uint16_t common_version(const wire::Preamble& theirs) noexcept {
  return std::min(theirs.highest, wire::highest_version);
}

std::optional<std::string> conflict(const wire::Hello& mine, const wire::Hello& theirs) {
  const bool same_protocol = theirs.protocol.lowest <= mine.protocol.highest &&
                             mine.protocol.lowest <= theirs.protocol.highest &&
                             mine.keeps_connection == theirs.keeps_connection;
  if (innermost(mine.provider) == innermost(theirs.provider) && same_protocol) return std::nullopt;
  return "the dialing side uses provider " + described(theirs) + ", the listening side " + described(mine) +
         "; both must use the same one (WEFT_PROVIDER); installed on both sides: " +
         common_providers(mine, theirs);
}

std::uint16_t common_protocol(const wire::Hello& mine, const wire::Hello& theirs) noexcept {
  return std::min(mine.protocol.highest, theirs.protocol.highest);
}

}  // namespace weft::core
