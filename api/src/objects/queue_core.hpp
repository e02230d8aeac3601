// A completion queue: the provider's entries, and the core's own reports (arrivals, failed connects), which
// wait here until taken and use no capacity (CMP-6).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>

#include "bootstrap/descriptor.hpp"
#include "objects/context_core.hpp"
#include "weft/completion_queue.hpp"
#include "weft/data_path.hpp"
#include "weft/provider/queues.hpp"

namespace weft::core {

class QueueCore final : public provider::QueueEvents {
 public:
  QueueCore(ContextCore& context, std::uint32_t capacity);
  ~QueueCore() override;
  QueueCore(const QueueCore&) = delete;
  QueueCore& operator=(const QueueCore&) = delete;

  [[nodiscard]] ContextCore& context() const noexcept { return context_; }
  [[nodiscard]] provider::CompletionQueue& provider() noexcept { return *provider_; }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return capacity_; }

  // ---- the program's side
  [[nodiscard]] std::size_t take(std::span<Completion> entries) noexcept {
    if (path_.needs_care.load(std::memory_order_relaxed)) [[unlikely]]
      return take_with_care(entries);
    return provider_->poll(entries.data(), entries.size());
  }
  [[nodiscard]] bool is_usable() const noexcept { return path_.is_usable(); }
  // For the handles, which poll without a call into the core.
  [[nodiscard]] PollPath& poll_path() noexcept { return path_; }
  [[nodiscard]] Polled wait(std::span<Completion> entries, std::chrono::nanoseconds timeout) noexcept;
  void wake() noexcept;
  [[nodiscard]] int descriptor();  // throws Error(resource_limit)
  [[nodiscard]] bool arm() noexcept;

  // ---- the core's side; any lock of the core may be held
  // `owner` names the object the report is about, for take_back.
  void report(const Completion& report, const void* owner);
  // Takes the owner's reports out; false when there was none left.
  bool take_back(const void* owner) noexcept;
  // From the provider, its locks held.
  void readable() noexcept override;
  // The context is closed: nobody is to sleep here any more.
  void close() noexcept;

 private:
  struct Report {
    Completion completion;
    const void* owner;
  };

  [[nodiscard]] std::size_t take_with_care(std::span<Completion> entries) noexcept;
  [[nodiscard]] std::size_t take_reports(std::span<Completion> entries) noexcept;
  void note_reports() noexcept;  // mutex_ is held
  [[nodiscard]] bool take_wake() noexcept;
  void signal_locked() noexcept;
  void make_descriptor();
  // Sleeps until the descriptor is readable, at most until the time given.
  void sleep(Service::Time until) noexcept;

  ContextCore& context_;
  const std::uint32_t capacity_;
  std::unique_ptr<provider::CompletionQueue> provider_;
  PollPath path_;
  std::atomic<bool> has_reports_{false};
  std::atomic<bool> has_wakes_{false};

  std::mutex mutex_;  // a leaf
  std::deque<Report> reports_;
  std::uint32_t wakes_ = 0;
  std::uint32_t waiters_ = 0;
  std::atomic<bool> signalled_{false};  // the event descriptor is readable
  std::atomic<int> descriptor_{-1};     // the epoll descriptor, once all of it is there
  Descriptor epoll_;
  Descriptor event_;
};

class QueueState {
 public:
  QueueState(std::shared_ptr<ContextState> context, std::shared_ptr<QueueCore> core) noexcept
      : context_(std::move(context)), core_(std::move(core)) {}
  ~QueueState() {
    if (core_->context().is_inert()) {
      leak(std::move(core_));
      leak(std::move(context_));
    }
  }
  QueueState(const QueueState&) = delete;
  QueueState& operator=(const QueueState&) = delete;

  [[nodiscard]] QueueCore& core() noexcept { return *core_; }
  [[nodiscard]] const std::shared_ptr<QueueCore>& shared() noexcept { return core_; }

 private:
  std::shared_ptr<ContextState> context_;  // destroyed last
  std::shared_ptr<QueueCore> core_;
};

}  // namespace weft::core
