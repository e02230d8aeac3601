// Queues and regions that forward everything to the ones they wrap; a decorator overrides what it is about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "weft/provider/queues.hpp"

namespace weft::decorator {

class CompletionQueue : public provider::CompletionQueue, public provider::QueueEvents {
 public:
  explicit CompletionQueue(provider::QueueEvents& events) : events_(events) {}

  // Follows the constructor at once: the wrapped queue is made with this one as its events.
  void wrap(std::unique_ptr<provider::CompletionQueue> inner) { inner_ = std::move(inner); }
  [[nodiscard]] provider::CompletionQueue& inner() noexcept { return *inner_; }

  std::size_t poll(Completion* out, std::size_t room) noexcept override { return inner_->poll(out, room); }
  [[nodiscard]] int descriptor() override { return inner_->descriptor(); }
  [[nodiscard]] bool arm() noexcept override { return inner_->arm(); }

  // Called by the wrapped queue, its locks held.
  void readable() noexcept override { events_.readable(); }

 protected:
  [[nodiscard]] provider::QueueEvents& events() noexcept { return events_; }

 private:
  provider::QueueEvents& events_;
  std::unique_ptr<provider::CompletionQueue> inner_;
};

class ReceiveQueue : public provider::ReceiveQueue {
 public:
  void wrap(std::unique_ptr<provider::ReceiveQueue> inner) { inner_ = std::move(inner); }
  [[nodiscard]] provider::ReceiveQueue& inner() noexcept { return *inner_; }

  PostResult post(const ReceiveRequest* requests, std::size_t count) noexcept override {
    return inner_->post(requests, count);
  }
  void set_low_water(std::uint32_t mark) noexcept override { inner_->set_low_water(mark); }

 private:
  std::unique_ptr<provider::ReceiveQueue> inner_;
};

class MemoryRegion : public provider::MemoryRegion {
 public:
  virtual void wrap(std::unique_ptr<provider::MemoryRegion> inner) { inner_ = std::move(inner); }
  [[nodiscard]] provider::MemoryRegion& inner() const noexcept { return *inner_; }

  [[nodiscard]] std::uint64_t token() const noexcept override { return inner_->token(); }
  [[nodiscard]] std::span<const std::byte> key() const noexcept override { return inner_->key(); }
  [[nodiscard]] AtomicScope atomic_scope() const noexcept override { return inner_->atomic_scope(); }
  Status deregister() noexcept override { return inner_->deregister(); }
  void collect_users(std::vector<std::uint32_t>& endpoint_ids) override {
    inner_->collect_users(endpoint_ids);
  }
  void cancel_shared_receives() noexcept override { inner_->cancel_shared_receives(); }

 private:
  std::unique_ptr<provider::MemoryRegion> inner_;
};

}  // namespace weft::decorator
