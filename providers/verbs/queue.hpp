// A completion queue of the program: it leads the endpoints whose receives complete here, polls the device's
// queues beneath them, and fills the program's entries from the endpoints' records.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "chain.hpp"
#include "common/queue.hpp"
#include "counts.hpp"
#include "device_queue.hpp"

namespace weft::verbs {

class Context;
class Endpoint;
class SharedReceives;

class Queue : public engine::Queue {
 public:
  using Clock = std::chrono::steady_clock;

  // Throws Error.
  [[nodiscard]] static std::unique_ptr<Queue> make(Context& context, std::uint32_t capacity,
                                                   provider::QueueEvents& events);
  ~Queue() override;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // ---- provider::CompletionQueue; poll is that of the gate's kind, see make
  [[nodiscard]] int descriptor() override { return epoll_; }
  [[nodiscard]] bool arm() noexcept override;

  // Polling `other` (which takes send-side completions of endpoints led by this queue) drives this one too.
  void driven_by(Queue& other);
  void no_longer_drives(Queue& other) noexcept { std::erase(also_, &other); }

  // ---- with the gate held
  [[nodiscard]] Chain& chain() noexcept { return chain_; }
  [[nodiscard]] ReceiveChain& receive_chain() noexcept { return receive_chain_; }
  [[nodiscard]] Counts& counts() noexcept { return counts_; }
  // With what its endpoints count themselves.
  [[nodiscard]] Counts all_counts() const noexcept;

  // What a pair needs: a place in the table of tags, and room on one of the device's queues. Throws Error.
  struct Place {
    std::uint32_t slot = 0;
    DeviceQueue* queue = nullptr;
  };
  [[nodiscard]] Place attach(Endpoint& endpoint, std::uint32_t entries, SharedReceives* shared);
  void detach(const Place& place, std::uint32_t entries, SharedReceives* shared) noexcept;
  // Which endpoints of a place have sides whose successful entries give just one completion each, to be
  // handed out at once.
  void note_simple_sends(std::uint32_t slot, Endpoint* endpoint) noexcept { sends_simply_[slot] = endpoint; }
  void note_simple_receives(std::uint32_t slot, Endpoint* endpoint) noexcept {
    receives_simply_[slot] = endpoint;
  }
  // Entries of shared receives name the pair only.
  void name_pair(std::uint32_t number, Endpoint& endpoint) { by_pair_[number] = &endpoint; }
  void forget_pair(std::uint32_t number) noexcept { by_pair_.erase(number); }

  void join(Endpoint& endpoint) { members_.push_back(&endpoint); }
  void part(Endpoint& endpoint) noexcept { std::erase(members_, &endpoint); }
  [[nodiscard]] const std::vector<Endpoint*>& members() const noexcept { return members_; }
  void join(SharedReceives& shared) { shared_.push_back(&shared); }
  void part(SharedReceives& shared) noexcept { std::erase(shared_, &shared); }
  [[nodiscard]] const std::vector<SharedReceives*>& shared_receives() const noexcept { return shared_; }

  // Reads everything the device has and keeps what the program is to get.
  void drive_all() noexcept;

  // Where entries go: to the caller's array of a poll under way while it has room and nothing is before them
  // in the ring, else to the ring.
  struct Out {
    Completion* next = nullptr;
    Completion* end = nullptr;
  };
  // `fill` writes all fields.
  template <class Fill>
  [[gnu::always_inline]] void emit(Out& out, const Fill& fill) noexcept {
    if (out.next != out.end) [[likely]] {
      fill(*out.next++);
      return;
    }
    Completion entry;
    fill(entry);
    keep(entry);
  }

  // Nothing of a region that is gone is kept at hand.
  void forget_region(std::uint64_t token) noexcept;
  // The helper is at work here.
  [[nodiscard]] bool helped() const noexcept { return helped_; }

  // ---- for the helper
  // One round; false when the program is inside just now. `next` is when to come again at the latest.
  bool serve(Clock::time_point now, Clock::time_point& next) noexcept;
  void enter_child() noexcept;

 protected:
  Queue(Context& context, std::uint32_t capacity, provider::QueueEvents& events);
  template <engine::Gate::Kind kind>
  std::size_t poll_as(Completion* out, std::size_t room) noexcept;

 private:
  template <engine::Gate::Kind kind>
  [[gnu::noinline]] std::size_t poll_inside(Completion* out, std::size_t room) noexcept;
  template <engine::Gate::Kind kind>
  [[gnu::noinline]] std::size_t leave_empty() noexcept;
  template <engine::Gate::Kind kind>
  [[gnu::noinline]] std::size_t poll_on(int count, Completion* out, std::size_t room) noexcept;
  [[gnu::noinline]] std::size_t poll_slowly(Completion* out, std::size_t room) noexcept;
  std::size_t poll_any(Completion* out, std::size_t room) noexcept;
  [[gnu::noinline]] void keep(const Completion& entry) noexcept { push(entry); }
  void note_shape() noexcept;
  std::size_t drive(Completion* out, std::size_t room) noexcept;
  [[gnu::noinline]] Out absorb(const ibv_wc& entry, Out out) noexcept;
  [[nodiscard]] bool absorb_quickly(const ibv_wc& entry, Completion& to) noexcept;
  [[gnu::noinline]] std::size_t deliver(std::size_t count, Completion* out, std::size_t room) noexcept;
  bool prepare_to_sleep() noexcept;
  void take_events() noexcept;

  static constexpr std::size_t batch = 16;

  Context& context_;
  ChannelHandle channel_;
  int epoll_ = -1;
  std::vector<std::unique_ptr<DeviceQueue>> device_queues_;
  std::size_t first_ = 0;    // which of them is asked first
  bool rings_only_ = false;  // another group pushes here: entries go through the ring, which has a lock then
  // The one device's queue, when nothing else is to be looked at; and what reads it.
  ibv_cq* only_ = nullptr;
  DeviceQueue::PollFunction poll_only_ = nullptr;
  bool inert_ = false;  // in a forked child
  bool helped_ = false;
  std::array<ibv_wc, batch> entries_{};  // of a poll
  Chain chain_;
  ReceiveChain receive_chain_;
  Counts counts_;
  // By the place in a tag. The first is never given away: tags of shared receives name it.
  std::vector<Endpoint*> slots_{nullptr};
  std::vector<Endpoint*> sends_simply_{nullptr};
  std::vector<Endpoint*> receives_simply_{nullptr};
  std::vector<std::uint32_t> free_slots_;
  std::unordered_map<std::uint32_t, Endpoint*> by_pair_;
  std::vector<Endpoint*> members_;
  std::vector<SharedReceives*> shared_;
  std::vector<Queue*> also_;
  std::uint64_t seen_polls_ = 0;  // the helper's note

  friend class Endpoint;
};

}  // namespace weft::verbs
