// One queue pair. Split over files by what happens: endpoint.cpp (life), endpoint_connect.cpp (the pair's
// states), endpoint_post.cpp and endpoint_take.cpp (taking requests), endpoint_issue.cpp (handing them to the
// device), endpoint_receive.cpp, endpoint_entries.cpp (entries of the device), endpoint_end.cpp.
#pragma once

#include <endian.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "blob.hpp"
#include "bounce.hpp"
#include "common/regions.hpp"
#include "handles.hpp"
#include "key.hpp"
#include "preset.hpp"
#include "queue.hpp"
#include "records.hpp"
#include "signals.hpp"
#include "weft/provider/endpoint.hpp"

namespace weft::verbs {

class Context;
class SharedReceives;
template <engine::Gate::Kind kind>
class EndpointAs;

class Endpoint : public provider::Endpoint {
 public:
  using Clock = std::chrono::steady_clock;

  // Throws Error.
  [[nodiscard]] static std::unique_ptr<Endpoint> make(Context& context, Queue& group,
                                                      const provider::EndpointRequest& request);
  ~Endpoint() override;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // ---- provider::Endpoint
  [[nodiscard]] std::vector<std::byte> blob(const provider::PathAddresses& path) override;
  [[nodiscard]] Limits limits() const noexcept override { return limits_; }
  bool establish(const provider::PeerParameters& peer) override;
  void go_up() noexcept override;
  bool withdraw_connect_report() noexcept override;
  // post and post_receives are those of the gate's kind, see make.
  [[nodiscard]] Imported import_key(std::span<const std::byte> key) override;
  void release_key(std::uint64_t token) noexcept override;
  void drain() noexcept override;
  void end(const provider::EndOrder& order) noexcept override;
  void rung() noexcept override {}  // the device wakes by itself
  void silence() noexcept override;

  // ---- for the queue and the context, with the gate held
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  // An entry that reports success and confirms just one signalled operation: its completion goes to `to`.
  // False for any other; then nothing has changed. Called while nothing else waits for entries, see
  // note_simple_sends.
  [[nodiscard, gnu::always_inline]] bool sent_one(std::uint32_t serial, Completion& to) noexcept {
    const std::uint64_t head = sends_.head;
    const SendRecord& record = sends_[head];
    if (record.last_serial != serial || !record.kind.signalled) [[unlikely]]
      return false;
    confirmed_ = serial;
    messages_confirmed_ += record.kind.message ? 1 : 0;
    sends_.head = head + 1;
    fill_sent(to, record);
    return true;
  }
  // The same for a receive of the endpoint's own.
  [[nodiscard, gnu::always_inline]] bool received_one(const ibv_wc& entry, Completion& to) noexcept {
    if (receives_.empty()) [[unlikely]]
      return false;
    const std::uint64_t context = receives_.front().context;
    ++receives_.head;
    ++messages_received_;
    fill_received(to, context, entry);
    return true;
  }
  // Any entry.
  void on_sent(const ibv_wc& entry, Queue::Out& out) noexcept;
  void on_received(const ibv_wc& entry, Queue::Out& out) noexcept;
  void on_shared_received(const ibv_wc& entry, Queue::Out& out) noexcept;
  // What is due, for the helper; returns when to come again at the latest.
  [[nodiscard]] Clock::time_point serve(Clock::time_point now) noexcept;
  [[nodiscard]] bool uses(std::uint64_t region) const noexcept;
  // Whatever is not confirmed yet will be, although nothing more is posted (MEM-5).
  void confirm_soon() noexcept;
  // The region is gone, or the key: nothing of it is kept at hand.
  void forget_region(std::uint64_t token) noexcept;
  void forget_key(std::uint64_t token) noexcept;
  // It has ended and its pair is still to be destroyed.
  [[nodiscard]] bool leaves_pair() const noexcept {
    return state_ == State::ended && place_.queue != nullptr;
  }
  void release_pair() noexcept;
  // What the endpoint counted by itself.
  void add_counts(Counts& sums) const noexcept {
    sums.add(Count::signals, signalled_posts_);
    sums.add(Count::single_posts, signalled_posts_ + quiet_posts_);
  }
  // A queue of completions got a second group that fills it: posting has to look anew.
  void forget_credit() noexcept { credit_ = receive_credit_ = 0; }
  [[nodiscard]] bool is_pair(const ibv_qp* pair) const noexcept { return pair_.get() == pair; }
  // The device or the port failed, or this pair did.
  void device_failed(std::string_view text) noexcept;
  void enter_child() noexcept;
  [[nodiscard]] bool takes_from(const SharedReceives& shared) const noexcept { return shared_ == &shared; }
  // How long the peer waits before it tries a message again that found no receive.
  void expect_dry(bool dry) noexcept;

 protected:
  Endpoint(Context& context, Queue& group, const provider::EndpointRequest& request);

 private:
  template <engine::Gate::Kind kind>
  friend class EndpointAs;

  enum class State : std::uint8_t {
    preparing,  // not up yet
    up,
    closing,  // drain() was called
    broken,   // failed() was called: waits for end()
    ending,   // the pair is in its error state, requests are being flushed
    ended
  };
  static constexpr std::uint32_t own_requests = 4;  // room beyond the program's depth, for tails and probes
  static constexpr std::uint64_t none = UINT64_MAX;
  // In the detail of a truncation: the number is that of a message of the side that found it.
  static constexpr std::uint64_t of_sender = std::uint64_t{1} << 63;

  struct Import {
    std::uint64_t token = 0;
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    std::uint32_t key = 0;
    Access access = Access::none;
  };

  class SendReports final : public engine::Reporter {
   public:
    explicit SendReports(Endpoint& endpoint) noexcept : endpoint_(endpoint) {}
    std::size_t hand_out(Completion* out, std::size_t room, std::uint32_t& released) noexcept override;
    [[nodiscard]] bool has_more() const noexcept override;

   private:
    Endpoint& endpoint_;
  };
  class ConnectReport final : public engine::Reporter {
   public:
    explicit ConnectReport(Endpoint& endpoint) noexcept : endpoint_(endpoint) {}
    std::size_t hand_out(Completion* out, std::size_t room, std::uint32_t& released) noexcept override;
    [[nodiscard]] bool has_more() const noexcept override { return endpoint_.connect_due_; }

   private:
    Endpoint& endpoint_;
  };
  class ReceiveReports final : public engine::Reporter {
   public:
    explicit ReceiveReports(Endpoint& endpoint) noexcept : endpoint_(endpoint) {}
    std::size_t hand_out(Completion* out, std::size_t room, std::uint32_t& released) noexcept override;
    [[nodiscard]] bool has_more() const noexcept override;

   private:
    Endpoint& endpoint_;
  };

  // endpoint_connect.cpp
  void create_pair(std::uint32_t max_inline);
  [[nodiscard]] bool has_receives() const noexcept;
  void change_state(ibv_qp_state state, ibv_qp_attr& attributes, int mask, const char* step) const;
  void reserve_inline_bytes();

  // endpoint_post.cpp, endpoint_take.cpp
  struct Remote {
    std::uint64_t address = 0;
    std::uint32_t key = 0;
  };
  Status take(const WorkRequest& request) noexcept;
  std::size_t take_simple(const WorkRequest* requests, std::size_t count) noexcept;
  [[nodiscard]] bool choose_preset(const WorkRequest& request) noexcept;
  [[gnu::noinline]] void refused_one(int code) noexcept;
  template <engine::Gate::Kind kind>
  [[gnu::noinline]] PostResult post_inside(const WorkRequest& request) noexcept;
  [[gnu::noinline]] PostResult post_slowly(const WorkRequest* requests, std::size_t count) noexcept;
  PostResult post_any(const WorkRequest* requests, std::size_t count) noexcept;
  [[nodiscard]] std::uint64_t issued() const noexcept { return sends_.tail - held_; }
  [[nodiscard]] std::uint32_t free_places() const noexcept;
  Status place(const WorkRequest& request, Access needed, bool inline_data, ibv_sge* places,
               std::uint64_t& length, std::uint32_t& count) const noexcept;
  Status find_remote(const WorkRequest& request, Access needed, std::uint64_t length, bool atomic,
                     Remote& remote) const noexcept;
  std::byte* inline_place(std::uint64_t position) noexcept {
    return inline_bytes_.get() + (position & inline_mask_) * limits_.max_inline;
  }
  [[nodiscard]] bool gather(ibv_sge* places, std::uint32_t& count, std::uint64_t length) noexcept;
  void name_regions(const WorkRequest& request, SendRecord& record) noexcept;
  PostResult refuse() const noexcept;
  [[nodiscard]] std::uint32_t in_device() const noexcept { return serial_ - confirmed_; }

  // endpoint_receive.cpp
  [[gnu::noinline]] PostResult post_receives_slowly(const ReceiveRequest* requests,
                                                    std::size_t count) noexcept;
  [[gnu::noinline]] void refused_one_receive(int code) noexcept;
  [[nodiscard]] bool choose_receive_preset(const ReceiveRequest& request) noexcept;
  [[nodiscard]] std::uint32_t free_receive_places() const noexcept;
  void ring_receives() noexcept;
  void keep_receive(std::uint64_t position, const ibv_recv_wr& work) noexcept;
  void push_receives() noexcept;

  // endpoint_issue.cpp
  void ring() noexcept;
  void hold(const WorkRequest& request, const ibv_send_wr& work, const ibv_sge* places) noexcept;
  void push_held() noexcept;
  bool build_piece(SendRecord& record, Plan& plan) noexcept;
  void plan_for(std::uint64_t position, const ibv_send_wr& work, const ibv_sge* places) noexcept;
  std::uint32_t keep_refused(const ibv_send_wr* first, std::size_t count) noexcept;
  void refused(int code, const char* what) noexcept;
  // How a held operation stood before a piece of it went into the chain.
  struct PieceInChain {
    std::uint64_t position;
    std::uint64_t moved;
    std::uint32_t requests;
  };
  using PiecesInChain = std::array<PieceInChain, chain_length>;
  [[nodiscard]] bool hand_over_pieces(const PiecesInChain& pieces) noexcept;
  int post_chain(ibv_send_wr* first, ibv_send_wr** refused) noexcept {
    return post_send_(pair_.get(), first, refused);
  }
  static int post_extended(ibv_qp* pair, ibv_send_wr* first, ibv_send_wr** refused) noexcept;
  bool post_own(bool probe) noexcept;

  // endpoint_entries.cpp
  // Everything up to this request is done (CMP-3, CMP-4).
  void confirm(std::uint32_t serial, Queue::Out& out) noexcept;
  // All but context and bytes, which every completion has of its own.
  [[gnu::always_inline]] static void copy_common(Completion& to, const Completion& from) noexcept {
    constexpr std::size_t own = offsetof(Completion, user_value);
    static_assert(own == sizeof to.context + sizeof to.bytes);
    std::memcpy(reinterpret_cast<std::byte*>(&to) + own, reinterpret_cast<const std::byte*>(&from) + own,
                sizeof to - own);
  }
  [[gnu::always_inline]] void fill_sent(Completion& entry, const SendRecord& record) const noexcept {
    const std::uint64_t context = record.context;
    const std::uint64_t length = record.length;
    const Operation operation = record.kind.operation;
    copy_common(entry, sent_);
    entry.context = context;
    entry.bytes = length;
    entry.operation = operation;
  }
  void set_care(bool care) noexcept {
    care_ = care;
    note_simple_sends();
  }
  void note_simple_sends() noexcept {
    if (place_.queue != nullptr)
      group_.note_simple_sends(place_.slot, completes_here_ && !care_ ? this : nullptr);
  }
  void note_simple_receives(bool simple) noexcept {
    if (place_.queue != nullptr) group_.note_simple_receives(place_.slot, simple ? this : nullptr);
  }
  void complete_elsewhere(const SendRecord& record) noexcept;
  [[gnu::always_inline]] void fill_received(Completion& entry, std::uint64_t context,
                                            const ibv_wc& wc) const noexcept {
    copy_common(entry, received_);
    entry.context = context;
    entry.bytes = wc.byte_len;
    if ((wc.wc_flags & IBV_WC_WITH_IMM) == 0) return;
    entry.has_immediate = true;
    entry.immediate = be32toh(wc.imm_data);
  }
  void after_own(std::uint32_t serial) noexcept;
  void after_confirm() noexcept;
  void send_failed(const ibv_wc& entry, Queue::Out& out) noexcept;
  void receive_failed(const ibv_wc& entry) noexcept;
  void received(std::uint64_t context, const ibv_wc& entry, Queue::Out& out) noexcept;
  void suspect() noexcept;

  // endpoint_end.cpp
  void fail(Status cause, std::uint64_t detail, std::int32_t native_code, std::string_view text) noexcept;
  void start_ending(const provider::EndOrder& order) noexcept;
  [[nodiscard]] bool flushed() const noexcept;
  [[nodiscard]] bool pair_is_quiet() const noexcept;
  bool try_finish(Clock::time_point now) noexcept;
  void finish() noexcept;
  void change_state(State state) noexcept;
  void find_fault() noexcept;
  [[nodiscard]] Status status_at_end(std::uint64_t position) const noexcept;
  [[nodiscard]] Completion blank(Operation operation, Status status) const noexcept;
  void silence_inside() noexcept;
  void drop_records() noexcept;

  Context& context_;
  Queue& group_;
  engine::Gate& gate_;  // the group's
  Queue& send_queue_;
  SharedReceives* shared_;
  provider::EndpointEvents* events_;
  const std::uint64_t user_value_;
  const std::uint32_t id_;
  State state_ = State::preparing;
  bool silenced_ = false;
  bool completes_here_;  // send-side completions go straight to the queue that leads
  bool child_ = false;
  Limits limits_;
  Completion sent_;  // what all successful ones have in common, by side
  Completion received_;

  // ---- the pair
  PairHandle pair_;
  // The device's own function, or ours where it takes requests one by one.
  int (*post_send_)(ibv_qp* pair, ibv_send_wr* first, ibv_send_wr** refused) = nullptr;
  Queue::Place place_;
  std::uint32_t device_entries_ = 0;  // reserved on the device's queue
  std::uint32_t device_depth_ = 0;    // send-side work requests the device takes
  std::uint32_t device_inline_ = 0;
  std::uint32_t first_packet_ = 0;
  std::uint32_t number_ = 0;
  bool established_ = false;
  ibv_gid_entry gid_{};
  Blob peer_;

  // ---- send side
  Ring<SendRecord> sends_;
  std::unique_ptr<RegionNames[]> send_regions_;
  std::unique_ptr<Plan[]> plans_;
  std::unique_ptr<std::byte[]> inline_bytes_;
  RegionHandle inline_region_;  // only where the device has too little inline of its own
  std::uint64_t inline_mask_ = 0;
  Bounce bounce_;  // for a message of more segments than the device takes, one at a time
  std::uint64_t bounce_position_ = none;
  SignalPlan signals_;
  // How many operations may leave at once, at least, before one has to be signalled. 0 unless up.
  std::uint32_t credit_ = 0;
  // Calls of one operation, signalled or not; counted here, where it costs less.
  std::uint64_t signalled_posts_ = 0;
  std::uint64_t quiet_posts_ = 0;
  std::uint64_t tag_ = 0;         // of all send-side requests, but for their number
  SendPreset* preset_ = nullptr;  // of the last operation
  ibv_send_wr* not_taken_ = nullptr;
  std::array<std::uint64_t, 4> simple_limits_{};  // lengths that leave with one work request, by operation
  std::uint64_t held_ = 0;                        // records at the tail that are not handed over whole
  std::uint32_t serial_ = 0;                      // of the last work request
  std::uint32_t confirmed_ = 0;                   // up to here the device has answered
  std::uint32_t own_serial_ = 0;                  // of the last request of our own, a tail or a probe
  bool own_open_ = false;                         // and it is not confirmed
  bool care_ = false;                             // something must happen after the next confirmation
  std::uint64_t messages_confirmed_ = 0;
  std::vector<Import> imports_;

  // ---- receive side
  std::uint32_t receive_credit_ = 0;  // how many can be handed over at once, at least
  ibv_recv_wr* receive_not_taken_ = nullptr;
  Ring<ReceiveRecord> receives_;
  std::unique_ptr<RegionNames[]> receive_regions_;
  std::unique_ptr<ReceivePlan[]> receive_plans_;
  std::uint64_t receives_issued_ = 0;          // position of the first one that the device has not taken
  std::unique_ptr<Bounce[]> receive_bounces_;  // only where the device takes too few segments
  std::uint32_t receives_flushed_ = 0;
  std::uint64_t messages_received_ = 0;
  std::vector<Completion> early_;  // before the endpoint is up

  // ---- the helper's notes
  Clock::time_point last_heard_{};
  std::uint32_t seen_serial_ = 0;
  std::uint32_t seen_confirmed_ = 0;
  std::uint32_t unchanged_ = 0;
  bool suspected_ = false;
  bool dry_ = false;       // the peer was told to try seldom
  bool seen_dry_ = false;  // in the last round

  // ---- the end
  std::optional<provider::EndOrder> pending_end_;
  provider::EndOrder last_order_;
  Clock::time_point end_deadline_{};
  std::uint64_t fault_position_ = none;  // of the send-side operation at fault
  Status fault_cause_ = Status::ok;
  std::optional<Completion> shared_fault_;  // a receive from the shared queue that failed
  bool failed_here_ = false;
  bool stopped_ = false;   // the pair is in its error state, by us
  bool flushing_ = false;  // entries of failed requests come
  bool drain_told_ = false;
  bool was_up_ = false;
  bool connect_due_ = false;
  bool end_due_ = false;
  bool receive_at_fault_ = false;
  SendReports send_reports_{*this};
  ConnectReport connect_report_{*this};
  ReceiveReports receive_reports_{*this};

  std::array<SendPreset, 8> presets_;  // by operation, signalled or not
  ReceivePreset receive_preset_;
};

}  // namespace weft::verbs
