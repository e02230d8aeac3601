#include "cross_memory.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace weft::engine {

namespace {

[[nodiscard]] void* place_of(std::uint64_t address) noexcept {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

}  // namespace

CrossMemory::CrossMemory(provider::Host& host) {
  while (own_ == 0) host.random_bytes(std::as_writable_bytes(std::span(&own_, 1)));
  ticket_.store(own_);
}

CrossMemory::Address CrossMemory::address() const noexcept {
  return {reinterpret_cast<std::uintptr_t>(&ticket_), own_, static_cast<std::uint32_t>(::getpid()), 0};
}

std::size_t CrossMemory::offer(const Piece& memory, std::span<std::byte> token) noexcept {
  wire::store(token.data(), static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory.address)));
  return token_size;
}

bool CrossMemory::connect(const Address& peer) noexcept {
  if (peer.ticket == 0 || peer.zero != 0) return false;
  std::uint64_t seen = 0;
  const iovec here{&seen, sizeof seen};
  const iovec there{place_of(peer.ticket_at), sizeof seen};
  const auto count = ::process_vm_readv(static_cast<pid_t>(peer.process), &here, 1, &there, 1, 0);
  if (count != static_cast<ssize_t>(sizeof seen) || seen != peer.ticket) return false;
  peer_ = peer;
  return true;
}

// In one call: the kernel goes through the pieces in their order.
MessageEndpoint::Submitted CrossMemory::pull(std::span<const std::byte> token, std::uint64_t offset,
                                             std::byte* to, std::uint64_t length,
                                             std::int32_t& native_code) const noexcept {
  using Submitted = MessageEndpoint::Submitted;
  native_code = -EPROTO;
  if (token.size() != token_size) return Submitted::broken;
  const std::uint64_t from = wire::load<std::uint64_t>(token.data()) + offset;
  std::uint64_t ticket = 0;
  const std::array<iovec, 2> here{{{to, length}, {&ticket, sizeof ticket}}};
  const std::array<iovec, 2> there{{{place_of(from), length}, {place_of(peer_.ticket_at), sizeof ticket}}};
  const auto count = ::process_vm_readv(static_cast<pid_t>(peer_.process), here.data(), here.size(),
                                        there.data(), there.size(), 0);
  if (count < 0) {
    native_code = -errno;
    return Submitted::broken;
  }
  native_code = -ECANCELED;
  const bool whole = static_cast<std::uint64_t>(count) == length + sizeof ticket;
  return whole && ticket == peer_.ticket ? Submitted::done : Submitted::broken;
}

}  // namespace weft::engine
