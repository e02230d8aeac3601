// A completion queue over TCP endpoints: which sockets to look at, and how to sleep on all of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "common/group.hpp"

namespace weft::tcp {

class TcpContext;
class TcpEndpoint;

class TcpQueue final : public engine::Group {
 public:
  TcpQueue(TcpContext& context, std::uint32_t capacity, provider::QueueEvents& events);
  ~TcpQueue() override;

  // ---- provider::CompletionQueue
  // ---------------------------------------------------------------------------------------
  std::size_t poll(Completion* out, std::size_t room) noexcept override;
  [[nodiscard]] int descriptor() override { return epoll_; }
  [[nodiscard]] bool arm() noexcept override;

  // ---- for endpoints, with the gate held
  // -------------------------------------------------------------------------------- Throws
  // Error(resource_limit) when the socket cannot be watched.
  void add(TcpEndpoint& endpoint) noexcept;
  void remove(TcpEndpoint& endpoint) noexcept;
  void output_waits(TcpEndpoint& endpoint, bool waits) noexcept;

  // Polling `other` (a queue that takes sends' completions of endpoints led by this one) drives this group as
  // well.
  void driven_by(TcpQueue& other);
  void no_longer_drives(TcpQueue& other) noexcept;

  // ---- for the helper
  // --------------------------------------------------------------------------------------------------- One
  // round for a program that stays away; false when the program is inside just now.
  bool drive_for_absent() noexcept;
  // Sends what is held back; true when something may still be.
  bool send_held_back() noexcept;
  [[nodiscard]] int epoll() const noexcept { return epoll_; }
  void close_in_child() noexcept;

  // The helper's own notes.
  struct Watch {
    std::uint64_t seen_activity = 0;
    bool away = false;  // in the helper's epoll set
    int quiet_rounds = 0;
  };
  Watch& helper_notes() noexcept { return watch_; }
  // The helper is about to sleep until something arrives; from here on it must be told of anything else.
  // The helper's tick while the program polls: what is held back leaves with the next poll.
  void set_tick() noexcept { tick_.store(true, std::memory_order_relaxed); }
  void set_helper_sleeps(bool sleeps) noexcept { helper_sleeps_.store(sleeps); }

 protected:
  void want_helper() noexcept override;

 private:
  void drive(bool somebody_sleeps) noexcept;
  void drive_ready(int most_events) noexcept;
  void watch(TcpEndpoint& endpoint) noexcept;
  void unwatch(TcpEndpoint& endpoint) noexcept;
  void unwatch_lone() noexcept;
  void watch_all() noexcept;
  void watch_output(TcpEndpoint& endpoint, bool output) noexcept;

  TcpContext& context_;
  int epoll_ = -1;
  std::vector<TcpEndpoint*> endpoints_;
  std::vector<TcpEndpoint*> waiting_;  // for room in their sockets
  std::vector<TcpQueue*> also_;        // groups this queue drives besides its own
  TcpEndpoint* hot_ = nullptr;         // where data came last
  unsigned spins_ = 0;                 // polls since somebody wanted to sleep
  unsigned misses_ = 0;                // times in a row that data came elsewhere
  unsigned hits_ = 0;
  Watch watch_;
  std::atomic<bool> helper_sleeps_{false};
  std::atomic<bool> tick_{false};
};

}  // namespace weft::tcp
