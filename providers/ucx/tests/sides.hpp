// Two sides over UCX's TCP whose control connection is the test: workers that meet by address, or through a
// listener as devices of RDMA do.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ucx_context.hpp"
#include "ucx_endpoint.hpp"
#include "ucx_queue.hpp"

namespace weft::ucx {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Host final : public provider::Host {
 public:
  void log(LogLevel /*level*/, std::string_view /*line*/) noexcept override {}
  [[nodiscard]] bool logs(LogLevel /*level*/) const noexcept override { return false; }
  [[nodiscard]] std::optional<std::string> variable(std::string_view /*name*/) const override { return {}; }
  void random_bytes(std::span<std::byte> out) const override {
    static std::random_device random;
    for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  }
};

class ContextEvents final : public provider::ContextEvents {
 public:
  void request_service() noexcept override {}
};

class QueueEvents final : public provider::QueueEvents {
 public:
  void readable() noexcept override {}
};

class Events final : public provider::EndpointEvents {
 public:
  void failed(Status cause, std::uint64_t /*detail*/, std::int32_t /*native*/,
              std::string_view text) noexcept override {
    failure = cause;
    what = text;
  }
  void established() noexcept override { is_established = true; }
  void ring_peer() noexcept override {}
  void drained(std::uint64_t /*messages*/) noexcept override {}
  void finished() noexcept override { is_finished = true; }

  Status failure = Status::ok;
  std::string what;
  bool is_established = false;
  bool is_finished = false;
};

inline sockaddr_in loopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}
inline std::span<const std::byte> bytes_of(const sockaddr_in& address) {
  return {reinterpret_cast<const std::byte*>(&address), sizeof address};
}

// As devices of RDMA have it; `natively`: with writes past the engine's stream, which UCX then carries out by
// its own code at the target.
inline const Lanes& listening_tcp(bool natively) {
  static const auto make = [](WireUp wire_up, std::uint32_t native_from) {
    Lanes made = lanes_named("tcp");
    made.wire_up = wire_up;
    made.native_from = native_from;
    return made;
  };
  static const Lanes plain = make(WireUp::listener, 0);
  static const Lanes native = make(WireUp::listener, 4096);
  return natively ? native : plain;
}

inline Library library_over_tcp(Host& host, WireUp wire_up, bool natively = false) {
  Lanes lanes = listening_tcp(natively);
  lanes.wire_up = WireUp::address;  // no device of RDMA is looked for
  Library library = open_library(host, lanes, "lo");
  library.lanes = &lanes_named("tcp");
  if (wire_up == WireUp::address) return library;
  library.lanes = &listening_tcp(natively);
  library.rdma.name = "lo";
  library.rdma.address = mapped(bytes_of(loopback()));
  return library;
}

// A context of one queue.
struct Side {
  explicit Side(WireUp wire_up, std::chrono::milliseconds peer_timeout = 10s, bool natively = false)
      : context(host, request(peer_timeout, natively), library_over_tcp(host, wire_up, natively)),
        queue_holder(context.create_completion_queue(64, queue_events)),
        queue(static_cast<UcxQueue&>(*queue_holder)) {}
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  provider::OpenRequest request(std::chrono::milliseconds peer_timeout, bool natively) {
    provider::OpenRequest made;
    made.peer_timeout = peer_timeout;
    made.progress_mode = natively ? ProgressMode::automatic : ProgressMode::when_called;  // nobody helps
    made.events = &events;
    return made;
  }
  std::vector<Completion> poll() {
    std::array<Completion, 16> room{};
    const std::size_t count = queue_holder->poll(room.data(), room.size());
    return {room.begin(), room.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  Host host;
  ContextEvents events;
  QueueEvents queue_events;
  UcxContext context;
  std::unique_ptr<provider::CompletionQueue> queue_holder;
  UcxQueue& queue;
};

// One end of a connection whose control connection is this test.
struct End {
  explicit End(Side& on) : side(on) {
    provider::EndpointRequest request;
    request.id = 1;
    request.send_queue = request.receive_queue = on.queue_holder.get();
    request.send_depth = request.receive_depth = 8;
    request.max_inline = 32;
    request.events = &events;
    endpoint = on.context.prepare_endpoint(request);
    const sockaddr_in here = loopback();
    blob = endpoint->blob({bytes_of(here), bytes_of(here)});
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  ~End() {
    if (begun) {
      endpoint->end({});
      for (int i = 0; i < 1000 && !events.is_finished; ++i) static_cast<void>(side.poll());
    }
    endpoint->silence();
    endpoint.reset();
  }

  bool establish(const End& peer, bool initiator) {
    const sockaddr_in here = loopback();
    provider::PeerParameters parameters;
    parameters.protocol = 1;
    parameters.path = {bytes_of(here), bytes_of(here)};
    parameters.blob = peer.blob;
    parameters.limits = peer.endpoint->limits();
    parameters.initiator = initiator;
    begun = true;
    return events.is_established = endpoint->establish(parameters);
  }

  Side& side;
  Events events;
  std::unique_ptr<provider::Endpoint> endpoint;
  std::vector<std::byte> blob;
  bool begun = false;
};

template <class Condition>
bool eventually(std::initializer_list<Side*> sides, Condition condition, Clock::duration limit = 20s) {
  for (const auto end = Clock::now() + limit; Clock::now() < end;) {
    if (condition()) return true;
    for (Side* side : sides) static_cast<void>(side->poll());
    std::this_thread::sleep_for(1ms);
  }
  return condition();
}

}  // namespace weft::ucx
