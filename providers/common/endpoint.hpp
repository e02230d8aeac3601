// One end of a connection under the engine: the whole contract over a transport that only moves an ordered
// stream of bytes (or frames). A transport derives from it, implements the four functions at the end, and
// drives it by inbound(), arrived(), settle() and push_output() with the group's gate held.
//
// Split over files by what happens: endpoint.cpp (life), endpoint_post.cpp (taking requests),
// endpoint_output.cpp (framing and sending), endpoint_strict.cpp (what provider::StrictSwitches changes of
// that), endpoint_input.cpp (parsing), endpoint_match.cpp (messages meet receives), endpoint_offer.cpp and
// endpoint_fetch.cpp (payload that its receiver fetches).
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "credit.hpp"
#include "endpoint_memory.hpp"
#include "engine_blob.hpp"
#include "group.hpp"
#include "offers.hpp"
#include "records.hpp"
#include "regions.hpp"
#include "segments.hpp"
#include "transfer.hpp"
#include "weft/provider/endpoint.hpp"
#include "wire.hpp"

namespace weft::engine {

class Context;
class SharedReceives;

// On a cache line's boundary, so that what a small message touches is as few lines as can be.
class alignas(64) Endpoint : public provider::Endpoint {
 public:
  Endpoint(Context& context, Group& group, const provider::EndpointRequest& request);
  ~Endpoint() override;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  static void* operator new(std::size_t bytes, std::align_val_t /*line*/) {
    return EndpointMemory::take(bytes);
  }
  static void operator delete(void* memory, std::size_t bytes, std::align_val_t /*line*/) noexcept {
    EndpointMemory::give(memory, bytes);
  }

  // ---- provider::Endpoint
  // ------------------------------------------------------------------------------------------
  [[nodiscard]] std::vector<std::byte> blob(const provider::PathAddresses& path) override;
  [[nodiscard]] Limits limits() const noexcept override { return limits_; }
  bool establish(const provider::PeerParameters& peer) override;
  void go_up() noexcept override;
  bool withdraw_connect_report() noexcept override;
  PostResult post(const WorkRequest* requests, std::size_t count) noexcept override;
  PostResult post_receives(const ReceiveRequest* requests, std::size_t count) noexcept override;
  [[nodiscard]] Imported import_key(std::span<const std::byte> key) override;
  void release_key(std::uint64_t token) noexcept override;
  void drain() noexcept override;
  void end(const provider::EndOrder& order) noexcept override;
  void silence() noexcept override;
  void rung() noexcept override {}

  // ---- for the context and the shared receive queue, with the gate held
  // ---------------------------------------------
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] bool local_operation_uses(std::uint64_t region) const noexcept;
  [[nodiscard]] bool remote_operation_uses(std::uint64_t region) const noexcept;
  void match_waiting() noexcept;
  // In a forked child: answers not_connected for ever, touches nothing.
  void make_inert() noexcept { state_ = State::ended; }
  // Sends what is held back; for the helper.
  void send_held_back() noexcept;
  // Tells the peer of new receives, if it has not heard meanwhile.
  void send_due() noexcept;
  // The peer has no grants left, but the program still has entries to take and will post again soon.
  [[nodiscard]] bool waits_for_more() const noexcept {
    return may_come_.peer_is_dry() && group_.has_entries() && !may_come_.owes_half(receives_.depth());
  }

 protected:
  [[nodiscard]] Group& group() noexcept { return group_; }
  [[nodiscard]] Context& context() noexcept { return context_; }
  [[nodiscard]] provider::EndpointEvents& events() noexcept { return *events_; }

  // ---- for the transport, with the gate held
  // -------------------------------------------------------------------------- Where the next bytes of the
  // stream are to be put: one or two places, filled in order.
  [[nodiscard]] int inbound(std::array<iovec, 2>& places) noexcept {
    if (frame_left_ != 0) return inbound_payload(places);
    direct_ = 0;
    places[0] = scratch_place();
    return 1;
  }
  // `length` bytes were put there. False when the endpoint broke. After a run of arrivals the transport calls
  // settle().
  bool arrived(std::size_t length) noexcept {
    return direct_ != 0 ? arrived_directly(length) : consume(group_.scratch(), length);
  }
  // As arrived, for bytes that lie elsewhere, in the fabric's own memory say; inbound() is not asked then.
  bool arrived_at(const std::byte* bytes, std::size_t length) noexcept { return consume(bytes, length); }
  [[nodiscard]] bool among_large_payloads() const noexcept { return large_payloads_; }
  // What arrived may complete operations, ask for answers, free what waits, or want an acknowledgement: once
  // for all of it.
  void settle() noexcept {
    if (sends_.head != framing_) retire();
    if (framing_ != sends_.tail || answers_head_ != answers_tail_ || has_control() || update_due())
      push_output();
    note_untold();
  }
  // Frames and transmits what can leave now.
  void push_output() noexcept;
  // Asks the processor for what a message will touch, while the kernel is asked for the message: first the
  // endpoint, and once that is there, the receive.
  void prefetch() const noexcept {
    constexpr std::size_t line = 64;
    constexpr std::size_t lines = 7;
    const auto* const begin = reinterpret_cast<const std::byte*>(this);
    for (std::size_t i = 0; i < lines; ++i) __builtin_prefetch(begin + i * line);
  }
  // Where the next message's receive is or will be recorded.
  [[nodiscard]] const ReceiveRecord* next_receive() const noexcept { return &receives_[receives_.head]; }
  // Whatever comes next is to be put into the group's scratch buffer, all of it (inbound()).
  [[nodiscard]] bool takes_scratch() const noexcept { return frame_left_ == 0 && !large_payloads_; }
  // As arrived, for bytes put there without asking inbound().
  bool arrived_in_scratch(std::size_t length) noexcept { return consume(group_.scratch(), length); }
  [[nodiscard]] bool moving() const noexcept { return state_ == State::up || state_ == State::closing; }
  // The stream ended or failed; `native_code` is the transport's.
  void path_broken(std::int32_t native_code, std::string_view text) noexcept;

  // ---- for a transport that can fetch payload, with the gate held (EngineOptions::offer_from is not 0)
  // Tells the peer that it may offer.
  void announce_pulls() { add_control(wire::Type::pulls, 0); }
  // Whether this is being fetched and not complete yet. Fetches are numbered since the start; so many are
  // under way at most as EngineOptions::fetches_at_once says, their numbers one after the other.
  [[nodiscard]] bool pulling(std::uint64_t number) const noexcept {
    return pulling_ && number - offers_->fetched < offers_->begun - offers_->fetched &&
           offers_->fetch(number).transfer.left != 0;
  }
  [[nodiscard]] std::uint64_t first_pull() const noexcept { return offers_->fetched; }
  [[nodiscard]] std::uint64_t pulls_end() const noexcept { return offers_->begun; }
  // What is being fetched, how much of it is there, and where at most `most` more bytes belong.
  [[nodiscard]] std::span<const std::byte> pull_token(std::uint64_t number) const noexcept {
    return offers_->fetch(number).token();
  }
  [[nodiscard]] std::uint64_t pull_offset(std::uint64_t number) const noexcept {
    const Transfer& transfer = offers_->fetch(number).transfer;
    return transfer.total - transfer.left;
  }
  [[nodiscard]] Piece pull_place(std::uint64_t number, std::uint64_t most) noexcept {
    Transfer& transfer = offers_->fetch(number).transfer;
    return transfer.sink.next(std::min(most, transfer.left));
  }
  // So many bytes were put there. As after arrived(), the transport calls settle().
  void pulled(std::uint64_t number, std::uint64_t length) noexcept;

  // What the peer sent cannot be, below the engine's own frames (SEC-1).
  void peer_misbehaved(std::string_view text) noexcept { fail(Status::protocol, 0, 0, text); }

  // ---- what a transport implements, called with the gate held
  // ----------------------------------------------------------- Takes bytes for the stream from the front of
  // the pieces; returns how many, 0 when there is no room now, negative when the path is broken (path_broken
  // is not called for it).
  virtual std::ptrdiff_t transmit(const iovec* pieces, int count) noexcept = 0;
  // Output waits for room (true) or no longer does.
  virtual void output_waits(bool waits) noexcept = 0;
  // Starts and stops moving bytes; after detach() nothing touches the program's memory.
  virtual void attach() noexcept = 0;
  virtual void detach() noexcept = 0;

  // ---- what a transport whose payload can be fetched implements as well, called with the gate held
  // Lets the peer read this memory and writes the token that it needs for that; returns the token's length, 0
  // when this payload cannot be offered.
  [[nodiscard]] virtual std::size_t offer(const Piece& /*memory*/, std::span<std::byte> /*token*/) noexcept {
    return 0;
  }
  // The first `count` offers since the start were fetched.
  virtual void offers_taken(std::uint64_t /*count*/) noexcept {}
  // The endpoint ends: from here on the peer reads nothing that was offered, or learns that what it read is
  // void.
  virtual void withdraw_offers() noexcept {}
  // There is something to fetch: pull_token() and so on.
  virtual void begin_pull(std::uint64_t /*number*/) noexcept {}
  // Payload that could have been offered travels in the stream, in either direction.
  virtual void large_payload_passes() noexcept {}
  // From here on nothing writes to what pull_place() gave.
  virtual void stop_pull() noexcept {}

 private:
  // From here on a payload is large: it pays to receive it straight into its place.
  static constexpr std::uint32_t large_payload = 16 * 1024;
  static constexpr std::size_t small_read = 512;  // enough for the frames that come between large payloads
  static constexpr std::size_t small_header = sizeof(wire::Header);

  enum class State : std::uint8_t {
    preparing,  // not up yet
    up,
    closing,  // drain() was called
    broken,   // failed() was called: waits for end()
    ended
  };

  // Entries handed out from this endpoint's records instead of the queue's ring.
  class SendReports final : public Reporter {
   public:
    explicit SendReports(Endpoint& endpoint) noexcept : endpoint_(endpoint) {}
    std::size_t hand_out(Completion* out, std::size_t room, std::uint32_t& released) noexcept override;
    [[nodiscard]] bool has_more() const noexcept override;

   private:
    Endpoint& endpoint_;
  };
  class ConnectReport final : public Reporter {
   public:
    explicit ConnectReport(Endpoint& endpoint) noexcept : endpoint_(endpoint) {}
    std::size_t hand_out(Completion* out, std::size_t room, std::uint32_t& released) noexcept override;
    [[nodiscard]] bool has_more() const noexcept override { return endpoint_.connect_due_; }

   private:
    Endpoint& endpoint_;
  };
  class ReceiveReports final : public Reporter {
   public:
    explicit ReceiveReports(Endpoint& endpoint) noexcept : endpoint_(endpoint) {}
    std::size_t hand_out(Completion* out, std::size_t room, std::uint32_t& released) noexcept override;
    [[nodiscard]] bool has_more() const noexcept override;

   private:
    Endpoint& endpoint_;
  };

  // endpoint_post.cpp
  struct Checked {
    CheckedSegments local;
    std::uint32_t slot = 0;
    Access local_access = Access::none;
  };
  Status take(const WorkRequest& request) noexcept;
  Status check(const WorkRequest& request, Checked& checked) const noexcept;
  [[nodiscard]] const Import* import_for(const WorkRequest& request, std::uint64_t length,
                                         Access needed) const noexcept {
    const std::uint64_t index = request.remote.memory & 0xffffffff;
    if (index >= imports_.size()) return nullptr;
    const Import& import = imports_[index];
    const bool good = import.token == request.remote.memory && import.token != 0 &&
                      has(import.access, needed) && inside(request.remote.offset, length, import.length);
    return good ? &import : nullptr;
  }
  Status check_remote(const WorkRequest& request, std::uint64_t length, std::uint32_t& slot) const noexcept;
  Status check_small(const WorkRequest& request, Piece& piece, std::uint32_t& slot) const noexcept;
  SendRecord& record_small(const WorkRequest& request, const Piece& piece, std::uint32_t slot) noexcept;
  Status take_receive(const ReceiveRequest& request) noexcept;
  void tell_soon() noexcept;
  bool stash_inline(SendRecord& record) noexcept;
  void stash_unframed(std::uint64_t from) noexcept;

  // endpoint_output.cpp
  bool push_control() noexcept;
  bool flush_kept() noexcept;
  void frame_control(Outgoing& out) noexcept;
  void frame_update(Outgoing& out) noexcept;
  void frame_answers(Outgoing& out) noexcept;
  void frame_records(Outgoing& out) noexcept;
  bool frame_small_message(Outgoing& out, SendRecord& record) noexcept;
  bool frame_small_write(Outgoing& out, SendRecord& record) noexcept;
  void write_small_write(Outgoing& out, SendRecord& record) noexcept;
  void write_small_message(Outgoing& out, const std::byte* bytes, std::size_t length, std::uint8_t flags,
                           std::uint32_t immediate) noexcept;
  bool frame_unrecorded(Outgoing& out, const WorkRequest& request, const Piece& piece) noexcept;
  void post_small(const WorkRequest* requests, std::size_t count, PostResult& result) noexcept;
  bool send_framed(Outgoing& out) noexcept;
  [[nodiscard]] bool asks(const SendRecord& record) noexcept {
    return may_send_.asks(record.operation, record.flags, state_ == State::closing);
  }
  [[nodiscard]] bool may_start(SendRecord& record) noexcept;
  [[nodiscard]] bool write_may_leave() noexcept;
  [[nodiscard]] bool receive_was_there(const SendRecord& record) const noexcept;
  void frame_start(Outgoing& out, SendRecord& record, std::uint32_t payload) noexcept;
  static void frame_payload(Outgoing& out, const SendRecord& record, std::uint64_t offset,
                            std::uint32_t length, bool copied) noexcept;
  [[nodiscard]] bool may_offer(const SendRecord& record) const noexcept;
  [[nodiscard]] bool may_be_offered(const Answer& answer) const noexcept;
  [[nodiscard]] bool needs_stream(const Answer& answer) const noexcept;
  void put_offer(Outgoing& out, std::span<const std::byte> token, std::uint64_t length,
                 std::uint64_t region) noexcept;
  void frame_offer(Outgoing& out, SendRecord& record, std::span<const std::byte> token) noexcept;
  bool frame_answer_offer(Outgoing& out, Answer& answer) noexcept;
  void retire() noexcept;
  void complete_send(SendRecord& record, Status status, std::int32_t native_code) noexcept;
  // An update should leave by itself.
  [[nodiscard]] bool update_due() const noexcept {
    return may_come_.untold() &&
           (may_come_.tell_now || may_come_.peer_runs_dry(shared_ != nullptr ? 1 : receives_.depth()));
  }
  // A peer that runs dry waits for fresh receives too: tell_soon() may have left that for later.
  void note_untold() noexcept {
    if (holds_back_ || !(may_come_.awaited(window_can_wait_) || update_due())) return;
    holds_back_ = true;
    group_.note_held_back(*this);
  }
  [[nodiscard]] bool has_control() const noexcept { return owes_taken_ || !control_.empty(); }
  void add_control(wire::Type type, std::uint64_t word, std::span<const std::byte> extension = {});

  // endpoint_input.cpp
  bool consume(const std::byte* bytes, std::size_t length) noexcept;
  std::size_t take_small_frames(const std::byte* bytes, std::size_t length) noexcept;
  std::size_t take_small_message(const std::byte* frame, std::size_t length) noexcept;
  std::size_t take_small_write(const std::byte* frame, std::size_t length) noexcept;
  std::size_t take_whole_update(const std::byte* frame, std::size_t length) noexcept;
  int inbound_payload(std::array<iovec, 2>& places) noexcept;
  bool arrived_directly(std::size_t length) noexcept;
  // While large payloads come one after the other little is read beyond each, so that little is copied twice.
  [[nodiscard]] iovec scratch_place() noexcept {
    return {group_.scratch(), large_payloads_ ? small_read : Group::scratch_size};
  }
  bool begin_frame(const std::byte* header) noexcept;
  bool begin_send(const wire::Header& header, const wire::SendExtension& extension) noexcept;
  bool begin_write(const wire::Header& header, const wire::AccessExtension& extension) noexcept;
  bool begin_more(const wire::Header& header) noexcept;
  bool begin_read(const wire::Header& header, const wire::AccessExtension& extension) noexcept;
  bool begin_read_data(const wire::Header& header) noexcept;
  bool on_atomic(const wire::Header& header, const wire::AtomicExtension& extension) noexcept;
  bool on_atomic_data(const wire::Header& header) noexcept;
  bool on_update(const wire::Header& header, const wire::UpdateExtension& extension) noexcept;
  bool on_bind(const wire::Header& header, const wire::BindExtension& extension) noexcept;
  bool finish_frame() noexcept;
  bool finish_operation() noexcept;
  [[nodiscard]] const RegionEntry* accessible(std::uint32_t slot, std::uint64_t offset, std::uint64_t length,
                                              Access needed) const noexcept {
    if (slot >= bindings_.size()) return nullptr;
    const RegionEntry* region = regions_.find(bindings_[slot]);
    const bool good =
        region != nullptr && has(region->access, needed) && inside(offset, length, region->length);
    return good ? region : nullptr;
  }
  // The oldest read or atomic is answered.
  void take_answer(SendRecord& record) noexcept {
    record.answered = true;
    may_send_.take_answer(record.number);
    ++reads_head_;
  }
  bool expect_payload(Transfer& transfer, std::uint32_t length, bool may_be_offered = false) noexcept;
  bool break_protocol(std::string_view what) noexcept;
  bool refuse_access(std::string_view what) noexcept;

  // endpoint_offer.cpp
  bool on_taken(const wire::Header& header) noexcept;
  // The peer need not keep more of the stream behind what it fetches.
  [[nodiscard]] bool stream_is_held(std::uint64_t most) const noexcept {
    return offers_open_ && offers_->behind_oldest(stream_framed_) >= most;
  }
  // Nor of what is being framed.
  [[nodiscard]] bool is_held_with(const Outgoing& out) const noexcept {
    return offers_open_ && offers_->behind_oldest(stream_framed_ + out.total()) >= Offers::most_behind;
  }

  // endpoint_fetch.cpp
  bool begin_offer(const wire::Header& header) noexcept;
  bool begin_fetch() noexcept;
  bool finish_fetch() noexcept;
  bool keep_waiting(const std::byte* bytes, std::size_t length) noexcept;
  void take_waiting() noexcept;
  void look_ahead() noexcept;
  [[nodiscard]] std::size_t size_ahead(std::span<const std::byte> bytes) const noexcept;
  [[nodiscard]] bool comes_ahead(const wire::Header& header, const std::byte* extension) const noexcept;
  // Receives, and open reads, that what is being fetched belongs to.
  [[nodiscard]] std::uint32_t receives_ahead() const noexcept;
  [[nodiscard]] std::uint32_t answers_ahead() const noexcept;
  [[nodiscard]] bool fetches_into(std::uint64_t region) const noexcept;
  [[nodiscard]] std::uint32_t torn_messages() const noexcept;
  void stop_pulling() noexcept;

  // endpoint_match.cpp
  [[nodiscard]] bool receive_ready() noexcept;
  bool begin_message(std::uint64_t total, bool charged, std::uint32_t ahead = 0) noexcept;
  bool store_message(std::uint64_t stored) noexcept;
  bool match_stored() noexcept;
  void complete_receive(std::uint64_t bytes, bool has_immediate, std::uint32_t immediate) noexcept;
  bool fail_truncated(std::uint64_t length) noexcept;
  void message_matched() noexcept;

  // endpoint.cpp
  void fail(Status cause, std::uint64_t detail, std::int32_t native_code, std::string_view text) noexcept;
  void end_now(const provider::EndOrder& order) noexcept;
  [[nodiscard]] bool slot_free(std::size_t slot) const noexcept;
  [[nodiscard]] Status status_at_end(const SendRecord& record) const noexcept;
  void fill(Completion& entry, std::uint64_t context, std::uint64_t bytes, Operation operation,
            Status status) const noexcept {
    entry.context = context;
    entry.bytes = bytes;
    entry.user_value = user_value_;
    entry.endpoint_id = id_;
    entry.immediate = 0;
    entry.native_code = 0;
    entry.operation = operation;
    entry.status = status;
    entry.has_immediate = false;
  }
  [[nodiscard]] Completion blank(Operation operation, Status status) const noexcept {
    Completion entry;
    fill(entry, 0, 0, operation, status);
    return entry;
  }
  void silence_inside() noexcept;
  void end_if_unreachable() noexcept;
  void give_back_spills() noexcept;
  void drop_records() noexcept;

  static constexpr auto known_flags =
      Flags::unsignalled | Flags::inline_data | Flags::fence | Flags::with_immediate;

  // ---- what every small message touches, together: with many endpoints these lines are cold each time
  Group& group_;
  Queue& send_queue_;
  const RegionTable& regions_;  // the context's
  const std::uint32_t copy_below_;
  const std::uint32_t inline_limit_;
  const std::uint32_t id_;

 protected:
  // For a transport that has one: kept here because each transmission needs it.
  int descriptor_ = -1;

 private:
  const std::uint64_t user_value_;
  State state_ = State::preparing;
  Transfer::Kind arriving_ = Transfer::Kind::none;  // what operation_ is
  bool silenced_ = false;
  const bool strict_sends_;  // see provider::StrictSwitches
  const bool strict_writes_;
  bool release_writes_ = false;
  bool peer_announced_ = false;
  bool window_can_wait_ = false;  // its bytes: the peer announces what does not fit
  bool holds_back_ = false;       // in the group's list
  bool is_due_ = false;           // in the group's other list
  bool large_payloads_ = false;   // the last payload was large: read little beyond it
  bool owes_taken_ = false;       // the peer has not heard of the last that was fetched
  bool pulling_ = false;          // the stream waits until an offer is fetched
  bool offers_open_ = false;      // something this side offered was not fetched yet
  std::uint32_t frame_left_ = 0;  // payload bytes of the current frame still to come
  std::size_t direct_ = 0;        // bytes of the first inbound place, when that is the program's memory
  std::size_t partial_length_ = 0;
  Transfer* open_ = nullptr;  // whose payload the current frame carries
  Ring<SendRecord> sends_;
  Ring<ReceiveRecord> receives_;
  std::uint64_t framing_ = 0;        // position of the record being framed
  std::uint64_t stream_framed_ = 0;  // bytes framed since the start
  std::uint64_t stream_sent_ = 0;    // bytes the transport took
  std::unique_ptr<Outgoing> kept_;   // framed, not yet taken
  SendCredit may_send_;
  ReceiveCredit may_come_;
  std::uint32_t answers_head_ = 0;
  std::uint32_t answers_tail_ = 0;
  std::unique_ptr<Unexpected> stored_;
  std::vector<std::byte> control_;  // framed control messages, first to leave
  std::optional<provider::EndOrder> pending_end_;

  SharedReceives* shared_;
  Context& context_;
  provider::EndpointEvents* events_;
  Limits limits_;

  // ---- send side
  std::uint64_t framed_bytes_ = 0;  // of the payload of the record being framed
  bool peer_shares_receives_ = false;
  std::vector<std::uint64_t> reads_;  // ring of positions of open reads and atomics
  std::uint32_t reads_head_ = 0;
  std::uint32_t reads_tail_ = 0;
  std::vector<std::uint64_t> answered_from_;  // regions whose bytes the last transmission refers to
  bool records_first_ = false;                // answers and own operations take turns
  bool close_sent_ = false;
  bool close_answered_ = false;
  bool peer_closed_ = false;
  bool drains_ = false;

  // ---- receive side
  std::uint64_t announced_length_ = 0;
  bool waits_for_shared_ = false;
  Endpoint* next_waiting_ = nullptr;
  friend class SharedReceives;

  // ---- parsing
  std::array<std::byte, wire::max_header> partial_{};
  Transfer operation_;
  Transfer answer_in_;
  bool answer_arriving_ = false;

  std::unique_ptr<Offers> offers_;  // null: payload always travels in the stream

  // ---- the peer's access and ours
  std::vector<std::uint64_t> bindings_;  // slot -> region token, as the peer bound them
  std::vector<Answer> answers_;          // ring
  std::vector<Import> imports_;          // slot -> the peer's region

  // ---- the end
  provider::EndOrder last_order_;
  bool was_up_ = false;
  bool connect_due_ = false;
  bool end_due_ = false;
  bool receive_at_fault_ = false;
  bool failed_here_ = false;  // the detail of the end speaks of the peer's operations, not of ours
  SendReports send_reports_{*this};
  ConnectReport connect_report_{*this};
  ReceiveReports receive_reports_{*this};
};

}  // namespace weft::engine
