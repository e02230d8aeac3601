// A completion queue over endpoints whose bytes travel in messages of a fabric that is moved on by calls: it
// owns one fabric object (a libfabric endpoint with its queue, a UCX worker), which all its endpoints share.
// No memory of the program is ever given to that object: a transfer there could not be taken back when one
// endpoint ends.
//
// What derives from it brings the fabric's object: progress(), arm_fabric(), register_buffers(), and
// MessageEndpoint::submit(). Everything is called with the gate held, so the object needs no lock of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "helped_queue.hpp"
#include "message_wire.hpp"
#include "send_buffers.hpp"

namespace weft::engine {

class MessageContext;
class MessageEndpoint;

class MessageQueue : public HelpedQueue {
 public:
  MessageQueue(MessageContext& context, std::uint32_t capacity, provider::QueueEvents& events);
  ~MessageQueue() override;

  // ---- provider::CompletionQueue
  std::size_t poll(Completion* out, std::size_t room) noexcept final;
  [[nodiscard]] bool arm() noexcept final;

  // ---- for the helper
  bool drive_for_absent() noexcept final;
  [[nodiscard]] bool may_sleep() noexcept final;
  void close_in_child() noexcept override;

  // ---- for endpoints, with the gate held
  // Throws std::bad_alloc, or what register_buffers throws.
  void add(MessageEndpoint& endpoint);
  void remove(MessageEndpoint& endpoint) noexcept;
  void forget_lists(MessageEndpoint& endpoint) noexcept;
  void output_waits(MessageEndpoint& endpoint, bool waits) noexcept;
  // A message left. `sleeps`: its peer was told that this side sleeps, and may be asleep itself; the notice
  // of that lies in the fabric, where nobody looks unless the program does. `under_way`: the fabric may want
  // calls to move it on.
  void message_left(bool sleeps, bool under_way) noexcept {
    if (sleeps && activity() == asleep_since_) [[unlikely]] {
      set_unprepared(true);
      want_helper_soon();
    } else if (under_way) {
      want_helper();
    }
  }
  // It sent something that may linger.
  void lingers(MessageEndpoint& endpoint) noexcept { lingering_.push_back(&endpoint); }  // has room for all
  void touched(MessageEndpoint& endpoint) noexcept { touched_.push_back(&endpoint); }    // has room for all
  // It has something to fetch.
  void pulls(MessageEndpoint& endpoint) noexcept;
  [[nodiscard]] SendBuffers& buffers() noexcept { return buffers_; }
  [[nodiscard]] MessageContext& message_context() noexcept { return context_; }
  // The fabric wakes nobody: sleepers are rung for. Where it has a descriptor this may still be so for single
  // endpoints (MessageEndpoint::ring_for_sleepers).
  [[nodiscard]] bool needs_doorbell() const noexcept {
    return linger_ || (fabric_descriptors_.empty() && !descriptors_follow_);
  }
  [[nodiscard]] bool messages_linger() const noexcept { return linger_; }
  // The bell rang.
  void wake() noexcept;

 protected:
  // ---- what derives implements, with the gate held
  // Moves the fabric on by one short, bounded step: message_arrived() for each message, sent() or
  // send_failed() for each buffer it is done with. True when there was anything.
  virtual bool progress() noexcept = 0;
  // Before somebody sleeps on the descriptor given to watch_fabric(): true when nothing is there and whatever
  // comes will make it readable.
  [[nodiscard]] virtual bool arm_fabric() noexcept { return true; }
  // Memory from which messages will be sent; the answer stands in SendBuffer::registration. Throws Error.
  virtual void* register_buffers(std::byte* /*bytes*/, std::size_t /*length*/) { return nullptr; }

  // ---- what derives calls
  // When the fabric has a descriptor that tells of everything progress() may find: in its constructor, or
  // later after descriptors_follow() there, with the gate held then. There may be several. Without, sleepers
  // are woken over the core's connection. Throws Error(resource_limit).
  void watch_fabric(int descriptor);
  // Before such a descriptor is closed.
  void forget_fabric(int descriptor) noexcept;
  void descriptors_follow() noexcept { descriptors_follow_ = true; }
  // In its constructor, when sleepers are rung for though messages take their time: what this side's fabric
  // has taken may wait there for calls, without a word, and a ring may overtake what it is for. Descriptors
  // that are watched nevertheless tell of other things.
  void let_messages_linger() noexcept { linger_ = true; }
  // In its destructor, first: from here on the helper stays away.
  using HelpedQueue::leave_helper_alone;
  // From progress(). The bytes are the fabric's, and free again afterwards.
  void message_arrived(const std::byte* bytes, std::size_t length) noexcept;
  void message_arrived(const message::Header& header, const std::byte* payload, std::size_t length) noexcept;
  void sent(SendBuffer& buffer) noexcept;
  // Ends the endpoint it belongs to, no other (ERR-2).
  void send_failed(SendBuffer& buffer, std::int32_t native_code, std::string_view text) noexcept;
  // What MessageEndpoint::pull() began: so much of it is there, and no more of it is under way.
  void pulled(MessageEndpoint& endpoint, std::uint64_t number, std::uint64_t length) noexcept;
  void pull_failed(MessageEndpoint& endpoint, std::int32_t native_code, std::string_view text) noexcept;
  // True in a forked child: what the fabric needs in order to end must not happen there (MEM-7).
  [[nodiscard]] bool in_child() const noexcept { return in_child_; }

 private:
  struct Seat {
    std::uint64_t token = 0;  // 0: free
    MessageEndpoint* endpoint = nullptr;
  };

  void drive(bool somebody_sleeps) noexcept final;
  void drove_beside_sleeper() noexcept final;
  [[nodiscard]] bool prepare_sleep() noexcept final;
  void watch_in(int epoll) noexcept final;
  void watch_for_sleepers(int set, int descriptor) noexcept;
  void set_watches(bool watches) noexcept;
  void polled_awake() noexcept;
  bool move_on() noexcept;
  void settle_touched() noexcept;
  void retry_waiting() noexcept;
  bool pull_on() noexcept;
  void tell_asleep() noexcept;
  [[nodiscard]] bool needs_looks() const noexcept;
  void hear_doorbell() noexcept;

  MessageContext& context_;
  SendBuffers buffers_;
  std::vector<Seat> seats_;
  std::vector<std::uint32_t> free_seats_;
  std::vector<MessageEndpoint*> touched_;  // got something in this round
  std::vector<MessageEndpoint*> waiting_;  // for buffers, for room in the fabric, or for the peer to be up
  std::vector<MessageEndpoint*> retrying_;
  std::vector<MessageEndpoint*> pulling_;  // the next step of what they fetch is due
  std::vector<MessageEndpoint*> stepping_;
  std::vector<MessageEndpoint*> awake_to_;   // whose peer takes this side for awake
  std::vector<MessageEndpoint*> lingering_;  // what they sent may linger
  std::vector<int> fabric_descriptors_;
  bool watches_ = false;    // they are in the sets of those who sleep
  bool unwatched_ = false;  // but for one that the system refused
  std::uint32_t awake_polls_ = 0;
  bool descriptors_follow_ = false;
  bool linger_ = false;
  int doorbell_ = -1;
  bool in_child_ = false;
  std::uint64_t asleep_since_ = 0;  // the program's last call before somebody slept
  bool untold_ = false;             // a peer could not be told that this side sleeps
  std::atomic<bool> rung_{false};

  friend class MessageEndpoint;
};

}  // namespace weft::engine
