// Whether two sides can talk, and the words for it when not (CON-8).
#pragma once

#include <optional>
#include <string>

#include "address.hpp"
#include "bootstrap/wire.hpp"
#include "weft/provider/endpoint.hpp"

namespace weft::core {

class ContextCore;

// What this side says of itself; endpoint, limits, blob and private data are left open.
[[nodiscard]] wire::Hello introduction(ContextCore& context);

// The endpoint's blob; throws Error: as the provider, and system_error when it is longer than the interface
// allows.
[[nodiscard]] wire::Bytes checked_blob(provider::Endpoint& endpoint, const SocketAddress& local,
                                       const SocketAddress& peer);

// Why the two preambles do not fit, naming both.
[[nodiscard]] std::optional<std::string> preamble_conflict(const wire::Preamble& theirs);
// The highest version both know; no conflict given.
[[nodiscard]] std::uint16_t common_version(const wire::Preamble& theirs) noexcept;

// Why the two sides do not fit: names both providers and what both have.
[[nodiscard]] std::optional<std::string> conflict(const wire::Hello& mine, const wire::Hello& theirs);
// The highest version of the providers' protocol both know; no conflict given.
[[nodiscard]] std::uint16_t common_protocol(const wire::Hello& mine, const wire::Hello& theirs) noexcept;

}  // namespace weft::core
