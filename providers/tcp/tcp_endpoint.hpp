// An endpoint over one non-blocking TCP socket: the engine's stream of frames is the socket's stream of
// bytes.
#pragma once

#include <cstdint>

#include "common/endpoint.hpp"

namespace weft::tcp {

class TcpQueue;

class TcpEndpoint final : public engine::Endpoint {
 public:
  TcpEndpoint(engine::Context& context, TcpQueue& queue, const provider::EndpointRequest& request);
  ~TcpEndpoint() override;

  bool establish(const provider::PeerParameters& peer) override;

  // ---- for the queue, with the gate held
  // ------------------------------------------------------------------------------ Receives what is there and
  // answers; true when anything came.
  bool step() noexcept;
  // The socket may take more.
  void resume() noexcept;
  [[nodiscard]] int socket() const noexcept { return socket_; }
  [[nodiscard]] bool waits_for_room() const noexcept { return waits_for_room_; }
  void close_in_child() noexcept;

 protected:
  std::ptrdiff_t transmit(const iovec* pieces, int count) noexcept override;
  void output_waits(bool waits) noexcept override;
  void attach() noexcept override;
  void detach() noexcept override;

 private:
  friend class TcpQueue;

  TcpQueue& queue_;
  int socket_ = -1;
  bool attached_ = false;
  bool waits_for_room_ = false;
  // Places in the queue's lists.
  std::uint32_t member_index_ = 0;
  bool listed_ = false;          // driven by the queue
  bool watched_ = false;         // in the queue's epoll set
  bool watched_output_ = false;  // there for output as well
};

}  // namespace weft::tcp
