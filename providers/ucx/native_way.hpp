// How one endpoint writes to memory that its peer lent, and the peer to this side's: by UCP endpoints of
// their own, one for each direction that is used, so that one that breaks or is closed takes nobody else
// along (ERR-2). The lender listens, on a port of the endpoint's own, so that connections cannot get crossed;
// the borrower connects with the first key. Until that stands, and when it does not come to stand, the
// engine's stream does.
//
// UCX 1.13 puts from memory that it registers itself, with all remote rights (MEM-1), unless it copies; and
// what it puts cannot be taken back. So bytes go by buffers of the queue, and the program's memory is never
// UCX's.
#pragma once

#include <netinet/in.h>
#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "listener.hpp"
#include "native_region.hpp"

namespace weft::ucx {

class NativeWay;
class UcxEndpoint;
class UcxQueue;

// What is in UCX's hands: a piece to write, or the words behind it. They outlive what they belong to.
struct NativeStep {
  enum class Kind : std::uint8_t { write, look, flush };
  static constexpr std::size_t size = 8192;
  UcxQueue* queue = nullptr;
  NativeWay* way = nullptr;  // null: it has ended
  Kind kind = Kind::write;
  std::array<std::byte, size> bytes{};
};

// A fixed number for a queue, made with the first need.
class NativeSteps {
 public:
  static constexpr std::size_t count = 32;
  // Null when all are under way, or memory is out.
  [[nodiscard]] NativeStep* take(UcxQueue& queue, NativeWay& way, NativeStep::Kind kind) noexcept;
  void give(NativeStep& step) noexcept;
  void forget(const NativeWay& way) noexcept;

 private:
  std::unique_ptr<std::array<NativeStep, count>> steps_;
  std::vector<NativeStep*> free_;
};

// Everything with the queue's gate held.
class NativeWay {
 public:
  // `number`: of the peer's worker; `peer`: its device's address; `own`: this side's.
  NativeWay(UcxQueue& queue, UcxEndpoint& endpoint, std::uint64_t number, const sockaddr_in6& peer,
            const sockaddr_in6& own);
  ~NativeWay();
  NativeWay(const NativeWay&) = delete;
  NativeWay& operator=(const NativeWay&) = delete;

  // ---- lending; see engine::Endpoint
  [[nodiscard]] std::size_t lend(const NativeRegion& region, std::span<std::byte> key) noexcept;
  void stop_lending() noexcept;

  // ---- borrowing
  [[nodiscard]] bool borrow(std::uint32_t slot, std::span<const std::byte> key) noexcept;
  void give_up(std::uint32_t slot) noexcept;
  [[nodiscard]] std::ptrdiff_t write(std::uint32_t slot, std::uint64_t offset, const std::byte* from,
                                     std::uint64_t length) noexcept;
  void await() noexcept;

  void stop() noexcept;
  // From the queue's round, when the bell rang.
  void look() noexcept;

  // For tests.
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }

 private:
  struct Key {
    std::vector<std::byte> packed;  // until the connection stands
    std::uint64_t address = 0;
    ucp_rkey_h key = nullptr;
  };

  static void on_step(void* request, ucs_status_t status, void* step) noexcept;
  static void on_failure(void* way, ucp_ep_h endpoint, ucs_status_t status) noexcept;
  static void on_lent_failure(void* way, ucp_ep_h endpoint, ucs_status_t status) noexcept;
  static void close(ucp_ep_h& endpoint) noexcept;

  void connect() noexcept;
  void admit() noexcept;
  void begin_round() noexcept;
  void round_ended() noexcept;
  void unpack(Key& key) noexcept;
  void ready() noexcept;
  void fail(ucs_status_t status) noexcept;
  void stop_borrowing() noexcept;

  UcxQueue& queue_;
  UcxEndpoint& endpoint_;
  const std::uint64_t number_;
  const sockaddr_in6 peer_;
  const sockaddr_in6 own_;

  std::unique_ptr<Listener> listener_;
  ucp_ep_h lent_ = nullptr;  // by which the peer writes

  ucp_ep_h out_ = nullptr;
  std::uint16_t port_ = 0;  // the peer's; 0: it has not lent anything yet
  std::vector<Key> keys_;   // by slot
  bool is_ready_ = false;
  bool wants_connection_ = false;
  bool wants_round_ = false;
  ucs_status_t failure_ = UCS_OK;
  std::uint64_t sent_ = 0;     // bytes since the start
  std::uint64_t covered_ = 0;  // of them, by the flush that is under way, or the last
  bool flushes_ = false;
  ucp_rkey_h last_key_ = nullptr;  // where the last byte went
  std::uint64_t last_address_ = 0;
};

}  // namespace weft::ucx
