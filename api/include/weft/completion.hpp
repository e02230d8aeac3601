// What a completion queue hands out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "weft/status.hpp"
#include "weft/work_request.hpp"

namespace weft {

// One finished operation, or one report (connect, connection_request, endpoint_ended, low_water). All fields
// are right for failures too (CMP-5). A failed operation says nothing about the target (CMP-7).
struct Completion {
  std::uint64_t context = 0;      // as posted
  std::uint64_t bytes = 0;        // payload length; 0 for failures
  std::uint64_t user_value = 0;   // the program's own value for the endpoint (or listener, or receive queue)
  std::uint32_t endpoint_id = 0;  // Endpoint::id(); 0 for reports that concern no endpoint
  std::uint32_t immediate = 0;    // host order, when has_immediate
  std::int32_t native_code = 0;   // the fabric's own error code, 0 when there is none
  Operation operation = Operation::send;
  Status status = Status::ok;
  bool has_immediate = false;
};

static_assert(std::is_trivially_copyable_v<Completion>);
static_assert(sizeof(Completion) <= 48, "completions are copied on the hot path");

// The entries that a poll or a wait put into the caller's array, and why it returned. Iterable.
class [[nodiscard]] Polled {
 public:
  enum class Reason : std::uint8_t {
    completions,  // at least one entry
    empty,        // a poll found nothing
    timeout,      // a wait's time passed
    woken,        // CompletionQueue::wake was called
    failed        // the queue is not usable: its context is closed, or this is a forked child (MEM-7)
  };

  Polled(const Completion* entries, std::size_t count, Reason reason) noexcept
      : entries_(entries), count_(count), reason_(reason) {}

  [[nodiscard]] const Completion* begin() const noexcept { return entries_; }
  [[nodiscard]] const Completion* end() const noexcept { return entries_ + count_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] const Completion& operator[](std::size_t i) const noexcept { return entries_[i]; }
  [[nodiscard]] Reason reason() const noexcept { return reason_; }

 private:
  const Completion* entries_;
  std::size_t count_;
  Reason reason_;
};

}  // namespace weft
