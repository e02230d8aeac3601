// An endpoint whose stream of bytes is cut into messages of a fabric object that many endpoints share. What
// is left to a transport: how the fabric reaches the peer (fabric_blob, connect_fabric) and submit().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "endpoint.hpp"
#include "message_queue.hpp"

namespace weft::engine {

class MessageEndpoint : public Endpoint {
 public:
  // Throws Error, std::bad_alloc.
  MessageEndpoint(MessageContext& context, MessageQueue& queue, const provider::EndpointRequest& request);
  ~MessageEndpoint() override;

  // ---- provider::Endpoint
  [[nodiscard]] std::vector<std::byte> blob(const provider::PathAddresses& path) final;
  bool establish(const provider::PeerParameters& peer) final;
  void rung() noexcept final;

  // What became of a message given to the fabric.
  enum class Submitted : std::uint8_t {
    done,       // the buffer is free again
    under_way,  // MessageQueue::sent() or send_failed() will tell of the buffer
    no_room,    // not taken; tried again from a later round
    broken      // not taken, and the path is; native_code, below 0, tells why
  };

 protected:
  // ---- what a transport implements
  // What the peer's fabric needs in order to reach this side, at `path`; without the gate. Throws Error.
  [[nodiscard]] virtual std::vector<std::byte> fabric_blob(const provider::PathAddresses& path) = 0;
  // Makes ready to submit; `blob` is the peer's fabric_blob() and hostile. With the gate held. As
  // establish(): false when it is not ready yet, and then events().established() or events().failed()
  // follows. Throws Error.
  virtual bool connect_fabric(std::span<const std::byte> blob, const provider::PeerParameters& peer) = 0;
  // Gives the message to the fabric; with the gate held. SendBuffer::confirmed asks for sent().
  [[nodiscard]] virtual Submitted submit(SendBuffer& buffer, std::int32_t& native_code) noexcept = 0;
  // As submit, for at most MessageOptions::small_message bytes, from wherever they lie: the fabric takes them
  // within the call, or answers no_room, and then they go by a buffer. With the gate held, and with no buffer
  // of this endpoint under way, so that nothing is overtaken without bound.
  [[nodiscard]] virtual Submitted submit_small(const message::Header& /*header*/, const iovec& /*bytes*/,
                                               std::int32_t& /*native_code*/) noexcept {
    return Submitted::no_room;
  }
  // After the endpoint ended, with the gate held; buffers of it may still be under way.
  virtual void disconnect_fabric() noexcept {}

  // ---- what a transport that can fetch payload from the peer's memory implements as well, beside offer(),
  // withdraw_offers() and stop_pull() (endpoint.hpp), all with the gate held
  // Once up: the peer is told then that it may offer. Who can later calls may_be_offered() then.
  [[nodiscard]] virtual bool can_pull() const noexcept { return false; }
  void may_be_offered() noexcept {
    if (!moving()) return;
    announce_pulls();
    push_output();
  }
  // Fetches `length` bytes, MessageOptions::pull_step at most, from `offset` in what the token offers; the
  // token is the peer's and hostile. done: they are there, and they were valid when they were read.
  // under_way: MessageQueue::pulled() or pull_failed() follows, unless stop_pull() comes first. no_room: the
  // step is tried again now and then, also while somebody sleeps. broken: native_code, below 0, tells why.
  [[nodiscard]] virtual Submitted pull(std::uint64_t /*number*/, std::span<const std::byte> /*token*/,
                                       std::uint64_t /*offset*/, std::byte* /*to*/, std::uint64_t /*length*/,
                                       std::int32_t& /*native_code*/) noexcept {
    return Submitted::broken;
  }
  // From connect_fabric(): on this path nothing that a descriptor tells of wakes either side.
  void ring_for_sleepers() noexcept { rings_ = true; }

  [[nodiscard]] MessageQueue& queue() noexcept { return queue_; }

 private:
  friend class MessageQueue;

  // A message that came before its turn, or before go_up().
  struct Kept {
    std::vector<std::byte> payload;
    message::Kind kind = message::Kind::data;
    bool present = false;
  };

  // What is left of pieces to send.
  struct Cursor {
    const iovec* pieces = nullptr;
    int count = 0;
    std::size_t offset = 0;  // in the first
    std::size_t taken = 0;   // of all

    void pass(std::size_t part) noexcept {
      taken += part;
      offset += part;
      if (offset != pieces->iov_len) return;
      ++pieces;
      --count;
      offset = 0;
    }
  };

  std::ptrdiff_t transmit(const iovec* pieces, int count) noexcept final;
  void output_waits(bool waits) noexcept final;
  void attach() noexcept final;
  void detach() noexcept final;
  void begin_pull(std::uint64_t number) noexcept final;

  // For the queue, with the gate held.
  void take_message(const message::Header& header, const std::byte* payload, std::size_t length) noexcept;
  void deliver(message::Kind kind, const std::byte* payload, std::size_t length) noexcept;
  void deliver_kept() noexcept;
  void keep(std::uint32_t ahead, message::Kind kind, const std::byte* payload, std::size_t length) noexcept;
  void resume() noexcept;
  void settle_arrivals() noexcept {
    if (moving()) settle();
  }
  // False when it could not be said.
  bool tell_asleep() noexcept;
  void fabric_failed(std::int32_t native_code, std::string_view text) noexcept;

  // The next step of each fetch that waits for one.
  void pull_on() noexcept;
  void pull_arrived(std::uint64_t number, std::uint64_t length) noexcept;
  void pull_soon() noexcept;
  void touch() noexcept;

  bool say_up() noexcept;
  [[nodiscard]] SendBuffer* take_buffer() noexcept;
  void give_back(SendBuffer& buffer) noexcept;
  [[nodiscard]] message::Header next_header(message::Kind kind) const noexcept {
    return {peer_token_, peer_slot_ | static_cast<std::uint32_t>(kind) << message::slot_bits, sequence_out_};
  }
  [[nodiscard]] Submitted send_small(const iovec& bytes, std::int32_t& native_code) noexcept;
  void data_left(bool under_way) noexcept;
  void lingers() noexcept {
    if (lingers_) return;
    lingers_ = true;
    if (queue_.messages_linger()) queue_.lingers(*this);
  }
  [[nodiscard]] bool goes_in_pieces(const iovec* pieces, int count) const noexcept;
  [[nodiscard]] Submitted send_pieces(Cursor& from, std::int32_t& native_code) noexcept;
  [[nodiscard]] Submitted send_data(Cursor& from, std::int32_t& native_code) noexcept;
  [[nodiscard]] Submitted send(SendBuffer& buffer, std::int32_t& native_code) noexcept;
  void ring() noexcept;

  MessageQueue& queue_;
  std::uint64_t token_ = 0;  // of this side
  std::uint64_t peer_token_ = 0;
  std::uint32_t seat_ = 0;  // in the queue's table
  std::uint32_t peer_slot_ = 0;
  std::uint32_t sequence_out_ = 0;
  std::uint32_t sequence_in_ = 0;
  std::uint64_t data_out_ = 0;  // data messages, for SleepNotice
  std::uint64_t data_in_ = 0;
  std::uint32_t held_ = 0;  // buffers under way
  bool seated_ = false;
  bool attached_ = false;
  bool rings_ = false;      // who sleeps is rung for
  bool too_early_ = false;  // the peer sent more than it may before this side was up
  bool peer_up_ = false;
  bool said_up_ = false;
  bool waits_ = false;        // in the queue's list
  bool touched_ = false;      // in the queue's other list
  bool told_asleep_ = false;  // the peer rings for what it sends next
  bool peer_asleep_ = false;
  bool lingers_ = false;  // something was sent since the last word that this side sleeps
  bool unrung_ = false;   // by data to a peer that was taken for awake
  bool rung_ = false;     // and then the next message was
  std::uint32_t rung_at_ = 0;
  std::array<bool, Offers::most_fetches> pulls_due_{};  // the next step of fetches, by number
  bool pulls_soon_ = false;                             // in the queue's list
  bool pulls_refused_ = false;                          // and the fabric had no room for the last
  std::uint32_t kept_count_ = 0;
  std::unique_ptr<Kept[]> kept_;  // ring, by sequence
};

}  // namespace weft::engine
