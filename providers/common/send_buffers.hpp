// The buffers in which messages wait in a fabric's hands: made when endpoints are, bounded, so that a fabric
// that takes no more is felt by who sends (OPS-1). Some are kept for each endpoint, so that one whose peer
// stands still does not stop the others (PRG-1).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft::engine {

class MessageEndpoint;

struct SendBuffer {
  // First: a fabric that writes into the context it is given (libfabric's FI_CONTEXT2) may use it.
  alignas(16) std::array<std::byte, 64> fabric_context{};
  std::byte* bytes = nullptr;
  std::size_t length = 0;            // header included
  void* registration = nullptr;      // as MessageQueue::register_buffers answered
  MessageEndpoint* owner = nullptr;  // null: it ended, or the buffer is free
  SendBuffer* next = nullptr;        // while free
  bool under_way = false;
  bool confirmed = false;  // the fabric tells when it is on its way, and with it all before it
};

class SendBuffers {
 public:
  struct Shape {
    std::uint32_t size = 64 * 1024;  // bytes of one message, header included
    std::uint32_t kept = 2;          // for each endpoint
    std::uint32_t spare = 30;        // for whoever needs more
    std::uint32_t most = 24;         // that one endpoint may hold
  };
  explicit SendBuffers(const Shape& shape) noexcept : shape_(shape) {}

  // Memory for one more endpoint, in runs of buffers that `register_run(bytes, length)` may register; throws
  // std::bad_alloc, or what that throws.
  template <class RegisterRun>
  void add_share(const RegisterRun& register_run) {
    // Those left behind by endpoints that ended may never come back: a fabric can wait for ever for a peer
    // that died.
    const std::uint64_t wanted = shape_.spare + std::uint64_t{shape_.kept} * (shares_ + 1) + left_behind_;
    if (total_ < wanted) {
      const auto count =
          std::max<std::size_t>(static_cast<std::size_t>(wanted - total_), std::size_t{shape_.kept} * 8);
      add_run(count, register_run);
    }
    ++shares_;
    kept_free_ += shape_.kept;
  }
  // `held` buffers of that endpoint are still under way.
  void drop_share(std::uint32_t held) noexcept {
    --shares_;
    left_behind_ += held;
    kept_free_ -= shape_.kept - std::min(held, shape_.kept);
  }

  // Null when the endpoint, which holds `held` already, must wait.
  [[nodiscard]] SendBuffer* take(std::uint32_t held) noexcept {
    const bool own_share = held < shape_.kept;
    if (free_ == nullptr || (!own_share && (held >= shape_.most || free_count_ <= kept_free_)))
      return nullptr;
    if (own_share) --kept_free_;
    SendBuffer* const buffer = free_;
    free_ = buffer->next;
    --free_count_;
    return buffer;
  }
  // `held`: by its owner, this one included.
  void give(SendBuffer& buffer, std::uint32_t held) noexcept {
    if (held <= shape_.kept) ++kept_free_;
    put_in(buffer);
  }
  // Its owner has ended.
  void give_left_behind(SendBuffer& buffer) noexcept {
    --left_behind_;
    put_in(buffer);
  }

  // Nothing tells those under way apart later: their owner is gone.
  void disown(const MessageEndpoint& endpoint) noexcept {
    for (const Run& run : runs_) {
      for (std::size_t i = 0; i < run.count; ++i) {
        if (run.buffers[i].owner == &endpoint) run.buffers[i].owner = nullptr;
      }
    }
  }
  [[nodiscard]] std::uint32_t size() const noexcept { return shape_.size; }
  [[nodiscard]] std::uint64_t free_count() const noexcept { return free_count_; }
  [[nodiscard]] std::uint64_t under_way() const noexcept { return total_ - free_count_; }
  // Of endpoints that live.
  [[nodiscard]] std::uint64_t owned() const noexcept { return under_way() - left_behind_; }

 private:
  void put_in(SendBuffer& buffer) noexcept {
    buffer.owner = nullptr;
    buffer.under_way = false;
    buffer.next = free_;
    free_ = &buffer;
    ++free_count_;
  }

  struct FreeAligned {
    void operator()(std::byte* bytes) const noexcept { ::operator delete[](bytes, alignment); }
  };
  static constexpr std::align_val_t alignment{4096};
  struct Run {
    std::unique_ptr<SendBuffer[]> buffers;
    std::unique_ptr<std::byte[], FreeAligned> memory;
    std::size_t count = 0;
  };

  template <class RegisterRun>
  void add_run(std::size_t count, const RegisterRun& register_run) {
    Run run{std::make_unique<SendBuffer[]>(count),
            std::unique_ptr<std::byte[], FreeAligned>(
                static_cast<std::byte*>(::operator new[](count* shape_.size, alignment))),
            count};
    runs_.reserve(runs_.size() + 1);
    void* const registration = register_run(run.memory.get(), count * shape_.size);
    for (std::size_t i = 0; i < count; ++i) {
      SendBuffer& buffer = run.buffers[i];
      buffer.bytes = run.memory.get() + i * shape_.size;
      buffer.registration = registration;
      put_in(buffer);
    }
    total_ += count;
    runs_.push_back(std::move(run));
  }

  const Shape shape_;
  std::vector<Run> runs_;
  SendBuffer* free_ = nullptr;
  std::uint64_t total_ = 0;
  std::uint64_t free_count_ = 0;
  std::uint64_t kept_free_ = 0;  // of the free ones, kept for endpoints that hold fewer than their share
  std::uint64_t shares_ = 0;
  std::uint64_t left_behind_ = 0;  // under way, their owner gone
};

}  // namespace weft::engine
