// How the two ends of a connection find each other: one waits at a socket in the abstract namespace, the
// other comes there. Where, and by what the visitor is known, is told over the core's own connection.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "descriptor.hpp"
#include "weft/provider/provider.hpp"
#include "weft/status.hpp"

namespace unix_provider {

// Everybody on this machine can see the name and connect to it; only the peer knows the secret.
struct Invitation {
  static constexpr std::size_t part = 16;
  static constexpr std::size_t size = 2 * part;
  std::array<std::byte, part> name{};
  std::array<std::byte, part> secret{};

  void encode(std::span<std::byte, size> out) const noexcept;
  // Any bytes of the right number are an invitation; what is wrong with them shows when it is followed.
  [[nodiscard]] static Invitation decode(std::span<const std::byte, size> bytes) noexcept;
};

class Rendezvous {
 public:
  // Throws weft::Error(resource_limit).
  explicit Rendezvous(const weft::provider::Host& host);

  [[nodiscard]] const Invitation& invitation() const noexcept { return invitation_; }
  // The connection of the peer, which has come by now. Throws weft::Error(protocol) when it has not; whoever
  // came without the secret is sent away.
  [[nodiscard]] Descriptor receive_peer();

 private:
  Invitation invitation_;
  Descriptor socket_;
};

// Goes where the peer waits. Throws weft::Error: unreachable, resource_limit.
[[nodiscard]] Descriptor follow(const Invitation& invitation);

}  // namespace unix_provider
