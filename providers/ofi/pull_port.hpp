// Payload that a weft endpoint offers and fetches by reads of the fabric, through an endpoint of libfabric
// that no other weft endpoint uses: memory of the program is given to it, and closing it takes that back.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "address.hpp"
#include "common/message_endpoint.hpp"
#include "common/offers.hpp"
#include "rdm_endpoint.hpp"

namespace weft::ofi {

// What a pull port tells of.
class PullEvents {
 public:
  virtual void on_fetched(std::uint64_t number, std::uint64_t length) noexcept = 0;
  virtual void on_fetch_failed(std::int32_t code) noexcept = 0;

 protected:
  ~PullEvents() = default;
};

class PullPort {
 public:
  using Submitted = engine::MessageEndpoint::Submitted;

  // `device` outlives it. `keys`: random, so that no stranger guesses a key. Throws Error.
  PullPort(const Device& device, std::uint64_t keys);
  PullPort(const PullPort&) = delete;
  PullPort& operator=(const PullPort&) = delete;

  void set_events(PullEvents& events) noexcept { events_ = &events; }
  [[nodiscard]] int descriptor() const noexcept { return rdm_.descriptor; }

  // Where the one who offers waits to be read from; the token is the peer's and hostile.
  [[nodiscard]] static std::optional<InternetAddress> address_in(std::span<const std::byte> token) noexcept;

  // ---- with the gate held
  // Throws Error.
  void connect(const std::vector<std::byte>& address);
  [[nodiscard]] bool reaches() const noexcept { return peer_ != FI_ADDR_UNSPEC; }
  // From here on nobody reads or writes what was given to it.
  void close() noexcept;
  // In a forked child.
  void abandon() noexcept;

  // As the engine's endpoint wants it (engine::Endpoint::offer, offers_taken).
  [[nodiscard]] std::size_t offer(const engine::Piece& memory, std::span<std::byte> token) noexcept;
  void taken(std::uint64_t count) noexcept;
  // As MessageEndpoint::pull.
  [[nodiscard]] Submitted fetch(std::uint64_t number, std::span<const std::byte> token, std::uint64_t offset,
                                std::byte* to, std::uint64_t length, std::int32_t& native_code) noexcept;

  // It has work, or work of the peer's may come.
  [[nodiscard]] bool is_busy() const noexcept { return made_ != taken_ || reads_ != 0 || stalled_; }
  [[nodiscard]] int reads_under_way() const noexcept { return std::popcount(reads_); }
  bool progress() noexcept;
  [[nodiscard]] bool may_sleep() noexcept { return rdm_.may_sleep(device_); }

 private:
  // Where the peer finds what is offered; this side's address follows.
  struct Token {
    std::uint64_t key;
    std::uint64_t address;
  };
  static constexpr std::size_t token_size = sizeof(Token) + InternetAddress::size;
  // Beyond what is being read already.
  struct Fetch {
    std::uint64_t number = 0;
    std::byte* to = nullptr;
    std::uint64_t from = 0;
    std::uint64_t key = 0;
    std::uint64_t left = 0;
    std::uint64_t done = 0;
    std::uint32_t reads = 0;  // under way
  };
  static constexpr std::size_t most_fetches = engine::Offers::most_fetches;
  static constexpr std::size_t most_reads = 16;  // at once
  static constexpr std::uint32_t all_reads = (1U << most_reads) - 1;
  static constexpr std::size_t most_entries = 16;
  static constexpr std::size_t most_offers = engine::Offers::most_open;

  [[nodiscard]] bool is_open() const noexcept { return rdm_.endpoint != nullptr; }
  // 0, or what broke the path.
  [[nodiscard]] std::int32_t read_on() noexcept;
  [[nodiscard]] std::int32_t read_on(Fetch& fetch) noexcept;
  void hand_back() noexcept;
  void read_done(const void* context) noexcept;
  void failed(std::int32_t code) noexcept;

  const Device& device_;
  PullEvents* events_ = nullptr;
  const std::uint64_t keys_;
  RdmEndpoint rdm_;
  std::vector<std::byte> own_address_;  // encoded
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  // Offers, by their number.
  std::array<Handle<fid_mr>, most_offers> offers_;
  std::uint64_t made_ = 0;
  std::uint64_t taken_ = 0;
  std::array<Fetch, most_fetches> fetches_{};  // by number
  std::uint64_t newest_ = 0;
  std::array<fi_context2, most_reads> contexts_{};
  std::array<std::uint64_t, most_reads> reads_for_{};  // the fetch's number
  std::array<std::uint64_t, most_reads> lengths_{};
  std::uint32_t reads_ = 0;  // under way, a bit for each context
  bool stalled_ = false;     // libfabric had no room for the next
};

}  // namespace weft::ofi
