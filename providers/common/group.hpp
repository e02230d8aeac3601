// A completion queue with what its endpoints share while one thread drives them: buffers to frame into and to
// receive into, spills, and the list of them.
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "queue.hpp"
#include "records.hpp"

namespace weft::engine {

class Endpoint;
class SharedReceives;

// What one transmission is made of: bytes copied into a buffer, and places in the program's memory.
class Outgoing {
 public:
  static constexpr std::size_t buffer_size = std::size_t{128} * 1024;
  static constexpr int max_pieces = 256;

  void clear() noexcept {
    used_ = 0;
    sealed_ = 0;
    referred_ = 0;
    dropped_ = 0;
    count_ = 0;
  }
  // Room for `length` copied bytes; the caller fills them.
  [[nodiscard]] bool has_room(std::size_t length, int pieces = 0) const noexcept {
    return used_ + length <= buffer_size && count_ + pieces + 2 <= max_pieces;
  }
  [[nodiscard]] std::byte* copy_in(std::size_t length) noexcept {
    std::byte* at = buffer_.get() + used_;
    used_ += length;
    return at;
  }
  void refer(std::byte* address, std::size_t length) noexcept {
    seal();
    pieces_[static_cast<std::size_t>(count_++)] = {address, length};
    referred_ += length;
  }
  // Nothing is added any more: what was copied last becomes a piece.
  void seal() noexcept {
    if (used_ == sealed_) return;
    pieces_[static_cast<std::size_t>(count_++)] = {buffer_.get() + sealed_, used_ - sealed_};
    sealed_ = used_;
  }

  // Once sealed.
  [[nodiscard]] const iovec* pieces() const noexcept { return pieces_.data(); }
  [[nodiscard]] int count() const noexcept { return count_; }
  [[nodiscard]] std::size_t total() const noexcept { return used_ + referred_ - dropped_; }
  // Forgets the first `taken` bytes. Once sealed.
  void drop_front(std::size_t taken) noexcept;

 private:
  std::unique_ptr<std::byte[]> buffer_ = std::make_unique_for_overwrite<std::byte[]>(buffer_size);
  std::array<iovec, max_pieces> pieces_{};
  std::size_t used_ = 0;      // of the buffer
  std::size_t sealed_ = 0;    // of that, by pieces
  std::size_t referred_ = 0;  // bytes elsewhere
  std::size_t dropped_ = 0;
  int count_ = 0;
};

// Event counts, for tests and tuning: written with the gate held, read by anybody.
struct Counts {
  using Count = std::atomic<std::uint64_t>;
  Count transmissions{0};          // calls that sent something
  Count refused_transmissions{0};  // calls that found no room
  Count arrivals{0};               // calls that brought data
  Count empty_arrivals{0};         // calls that found none
  Count updates{0};                // grants and acknowledgements sent

  static void add(Count& count) noexcept {
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

class Group : public Queue {
 public:
  static constexpr std::size_t scratch_size = std::size_t{64} * 1024;

  Group(ThreadMode mode, std::uint32_t capacity, provider::QueueEvents& events)
      : Queue(mode, capacity, events),
        current_(std::make_unique<Outgoing>()),
        scratch_(std::make_unique_for_overwrite<std::byte[]>(scratch_size)) {}

  // The buffer an endpoint frames into. When a transmission was not taken whole, the endpoint keeps the
  // buffer and the group goes on with another.
  [[nodiscard]] Outgoing& outgoing() noexcept { return *current_; }
  [[nodiscard]] std::unique_ptr<Outgoing> keep_outgoing();
  void give_back(std::unique_ptr<Outgoing> outgoing) noexcept;

  [[nodiscard]] std::byte* scratch() noexcept { return scratch_.get(); }
  [[nodiscard]] SpillPool& spills() noexcept { return spills_; }
  [[nodiscard]] Counts& counts() noexcept { return counts_; }
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

  // Endpoints with something to say that can wait a while for company (PRG-5).
  void note_held_back(Endpoint& endpoint) noexcept {
    held_back_.push_back(&endpoint);  // has room for all members
    want_helper();
  }
  void forget_held_back(Endpoint& endpoint) noexcept {
    std::erase(held_back_, &endpoint);
    std::erase(due_, &endpoint);
  }
  [[nodiscard]] bool holds_back() const noexcept { return !held_back_.empty(); }
  // Sends it all.
  void release_held_back() noexcept;

  // Endpoints whose peer should hear of new receives, but can still send for a while: the news rides along
  // with what the program posts now, or leaves with its next poll.
  void note_due(Endpoint& endpoint) noexcept { due_.push_back(&endpoint); }  // has room for all members
  void send_due() noexcept {
    if (!due_.empty()) [[unlikely]]
      send_all_due(true);
  }
  // Also for those whose program has entries to take first: it stays away, or goes to sleep.
  void send_due_now() noexcept { send_all_due(false); }

  // Endpoints led by this group, for looking at all of them (deregistering, fork).
  void join(Endpoint& endpoint) {
    members_.push_back(&endpoint);
    held_back_.reserve(members_.size());
    due_.reserve(members_.size());
  }
  void part(Endpoint& endpoint) noexcept {
    std::erase(members_, &endpoint);
    forget_held_back(endpoint);
  }
  [[nodiscard]] const std::vector<Endpoint*>& members() const noexcept { return members_; }
  void join(SharedReceives& receives) { shared_.push_back(&receives); }
  void part(SharedReceives& receives) noexcept { std::erase(shared_, &receives); }
  [[nodiscard]] const std::vector<SharedReceives*>& shared_receives() const noexcept { return shared_; }

  // Endpoints that close and wait for their peers: the program has often done all it does, so the helper
  // drives them without waiting to see whether it stays away.
  void drain_begins() noexcept {
    draining_.store(draining_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    want_helper_soon();
  }
  void drain_ends() noexcept {
    draining_.store(draining_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }
  [[nodiscard]] bool drains() const noexcept { return draining_.load(std::memory_order_relaxed) != 0; }

 protected:
  // As below, even if the helper would look by itself in a while.
  virtual void want_helper_soon() noexcept { want_helper(); }
  // Something waits for a later step: if the helper sleeps without a limit, it must be told.
  virtual void want_helper() noexcept = 0;

 private:
  void send_all_due(bool patient) noexcept;

  std::unique_ptr<Outgoing> current_;
  std::vector<std::unique_ptr<Outgoing>> spare_;
  std::unique_ptr<std::byte[]> scratch_;
  SpillPool spills_;
  Counts counts_;
  std::atomic<std::uint32_t> draining_{0};  // written with the gate held
  std::vector<Endpoint*> members_;
  std::vector<Endpoint*> held_back_;
  std::vector<Endpoint*> due_;
  std::vector<SharedReceives*> shared_;
};

}  // namespace weft::engine
