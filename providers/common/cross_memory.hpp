// Reads the memory of the peer's process on the same host, where the kernel lets us (process_vm_readv): the
// pull of a transport that needs nothing else for it. What was read counts only if the peer's ticket, read
// after it, still stands: so nothing is taken from memory that its owner has got back meanwhile.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "message_endpoint.hpp"
#include "weft/provider/provider.hpp"

namespace weft::engine {

class CrossMemory {
 public:
  // Travels in the transport's blob.
  struct Address {
    std::uint64_t ticket_at;  // in the process's memory
    std::uint64_t ticket;     // random, never 0
    std::uint32_t process;
    std::uint32_t zero;
  };
  static_assert(sizeof(Address) == 24);
  static constexpr std::size_t token_size = sizeof(std::uint64_t);

  explicit CrossMemory(provider::Host& host);
  CrossMemory(const CrossMemory&) = delete;
  CrossMemory& operator=(const CrossMemory&) = delete;
  ~CrossMemory() { withdraw(); }

  // ---- of what this side offers
  [[nodiscard]] Address address() const noexcept;
  [[nodiscard]] static std::size_t offer(const Piece& memory, std::span<std::byte> token) noexcept;
  void withdraw() noexcept { ticket_.store(0, std::memory_order_seq_cst); }

  // ---- of what the peer offers. `peer` is hostile: the worst it can do is to name memory that this
  // process's user may read anyway, and that then lands where its own payload would. Whether the kernel lets
  // us.
  bool connect(const Address& peer) noexcept;
  [[nodiscard]] bool reaches() const noexcept { return peer_.ticket != 0; }
  [[nodiscard]] MessageEndpoint::Submitted pull(std::span<const std::byte> token, std::uint64_t offset,
                                                std::byte* to, std::uint64_t length,
                                                std::int32_t& native_code) const noexcept;

 private:
  std::uint64_t own_ = 0;
  std::atomic<std::uint64_t> ticket_{0};
  Address peer_{};
};

}  // namespace weft::engine
