// Where a worker waits for others that connect through rdma_cm, for lanes that do not wire up by address.
//
// The control connection brings the number of the peer's worker, which is random, and the port of its
// listener; the IP address is the one that the control connection itself goes to. One side connects, and
// tells its number with that (UCX's client id); so the other finds the path that it is for. Who comes with a
// number that nobody waits for is kept for a while, since its side may be up first, and then turned away
// (SEC-1).
#pragma once

#include <ucp/api/ucp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "library.hpp"

namespace weft::ucx {

// What the control connection brings of a worker.
struct MeetingPlace {
  std::uint64_t number = 0;
  std::uint16_t port = 0;

  static constexpr std::size_t size = sizeof number + sizeof port;
  void encode(std::span<std::byte, size> bytes) const noexcept;
  // Nothing when it is malformed.
  [[nodiscard]] static std::optional<MeetingPlace> decode(std::span<const std::byte> bytes) noexcept;
};

// Makes a worker, and a listener where the lanes need one, and ends both: so much must work for a context to
// be of use (SEL-3). librdmacm also opens the device for the life of the process with its first listener,
// which belongs to opening a context, not to some queue later. Throws Error.
void rehearse(const Library& library);

class Listener {
 public:
  // At the device's address, on any port. Throws Error.
  Listener(ucp_worker_h worker, const sockaddr_in6& address);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  [[nodiscard]] bool has_visitors() const noexcept { return !visitors_.empty(); }
  // The visitor with this number, if it is there; the caller makes an endpoint of it.
  [[nodiscard]] ucp_conn_request_h take(std::uint64_t number) noexcept;
  // Puts one back that was taken too soon.
  void keep(ucp_conn_request_h request, std::uint64_t number) noexcept;
  // One of those that are here may be awaited now.
  void look_again() noexcept { news_ = true; }
  // Turns those away that waited too long. True when one came since the last call, or look_again() was
  // called.
  [[nodiscard]] bool look_after_visitors() noexcept;

 private:
  struct Visitor {
    ucp_conn_request_h request;
    std::uint64_t number;
    std::chrono::steady_clock::time_point came;
  };

  static void on_visitor(ucp_conn_request_h request, void* listener) noexcept;
  void drop_late_visitors() noexcept;

  ucp_listener_h listener_ = nullptr;
  std::uint16_t port_ = 0;
  std::vector<Visitor> visitors_;
  bool news_ = false;
};

}  // namespace weft::ucx
