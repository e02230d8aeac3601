// A file descriptor of the core. A forked child closes all of them, whatever state the parent's threads were
// in, because a child that keeps a connection open would hide its parent's death (MEM-7).
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <mutex>
#include <set>
#include <utility>

namespace weft::core {

// The descriptors of the process's contexts. One per process, never destroyed.
class DescriptorTable {
 public:
  [[nodiscard]] static DescriptorTable& instance();

  void lock() {
    mutex_.lock();
    if (stale_) forget_the_parents();
  }
  void unlock() { mutex_.unlock(); }
  // With the lock held.
  void insert(int descriptor) { open_.insert(descriptor); }
  void erase(int descriptor) { open_.erase(descriptor); }
  // In the child, with the lock held and without the allocator, whose state is unknown: closes all;
  // Descriptor objects of the parent no longer own anything.
  void close_all_in_child() noexcept;
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_; }
  [[nodiscard]] std::size_t count() const noexcept { return open_.size(); }

 private:
  void forget_the_parents() {
    open_.clear();
    stale_ = false;
  }

  std::mutex mutex_;
  bool stale_ = false;  // open_ holds what was the parent's
  std::set<int> open_;
  std::uint32_t generation_ = 0;  // raised in a child
};

class Descriptor {
 public:
  Descriptor() noexcept = default;
  Descriptor(Descriptor&& other) noexcept { *this = std::move(other); }
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      value_ = std::exchange(other.value_, -1);
      generation_ = other.generation_;
    }
    return *this;
  }
  ~Descriptor() { reset(); }

  // Takes what `call` returns: a new descriptor, or -1 with errno set. `call` must not block; no fork happens
  // between it and the entry in the table.
  template <typename Call>
  [[nodiscard]] static Descriptor from(Call&& call) {
    DescriptorTable& table = DescriptorTable::instance();
    const std::lock_guard guard(table);
    Descriptor made;
    made.generation_ = table.generation();
    const int value = call();
    if (value < 0) return made;
    try {
      table.insert(value);
    } catch (...) {
      ::close(value);
      throw;
    }
    made.value_ = value;
    return made;
  }

  [[nodiscard]] int get() const noexcept { return value_; }
  [[nodiscard]] explicit operator bool() const noexcept { return value_ >= 0; }

  void reset() noexcept {
    if (value_ < 0) return;
    const int saved_error = errno;
    const int value = release();
    if (value >= 0) ::close(value);
    errno = saved_error;
  }

  // Gives the descriptor away; -1 in a child, where it is closed already.
  [[nodiscard]] int release() noexcept {
    const int value = std::exchange(value_, -1);
    if (value < 0) return -1;
    DescriptorTable& table = DescriptorTable::instance();
    const std::lock_guard guard(table);
    if (generation_ != table.generation()) return -1;
    table.erase(value);
    return value;
  }

 private:
  int value_ = -1;
  std::uint32_t generation_ = 0;
};

}  // namespace weft::core
