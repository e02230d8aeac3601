// Writes that the fabric carries out by itself, beside the stream: into regions that the peer lends.
//
// A region that grants all remote rights, and that the transport could make reachable, is lent to each peer
// that binds its key: the target checks the key's secret first, and only then tells what the fabric needs
// (`lend`). So a key that was never good, or lacks a right, reaches nothing. Before the region is
// deregistered it is recalled; the peer ends what it has under way, says so (`returned`), and goes on through
// the stream, where the target refuses as always. From a peer that keeps it, because it is stopped for
// instance, the transport cuts the way by which it writes, and the endpoint goes on without.
//
// Order: the stream waits while anything is under way beside it, and what is posted behind a native write
// leaves once the fabric says that the write is done at the target. So a message behind it finds it done
// (ORD-2), and so does a `flush`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::engine {

struct Natives {
  using Clock = std::chrono::steady_clock;

  // ---- what this side writes
  bool ready = false;          // the transport can
  std::uint64_t sent = 0;      // bytes that the fabric took since the start
  std::uint64_t done = 0;      // of them, known to be at the target
  bool waits = false;          // the fabric had no room
  bool within_record = false;  // it has taken a part of the record being framed
  enum class Hold : std::uint8_t { none, held, returning };
  // What the peer's region behind each slot is, and whether it is lent.
  struct Borrowed {
    std::uint64_t region = 0;
    std::uint64_t end = 0;  // its last write ends here
    Hold hold = Hold::none;
  };
  std::vector<Borrowed> borrowed;
  std::uint32_t returning = 0;  // of them

  // ---- what this side lends
  struct Loan {
    std::uint64_t region = 0;  // 0: the slot lends nothing
    bool recalled = false;
    bool cut = false;  // the peer cannot use it any more, and may not know
    Clock::time_point recalled_at{};
  };
  bool peer_borrows = false;
  std::vector<Loan> loans;  // by slot

  [[nodiscard]] bool lends(std::uint64_t region) const noexcept {
    for (const Loan& loan : loans) {
      if (loan.region == region && !loan.cut) return true;
    }
    return false;
  }
};

}  // namespace weft::engine
