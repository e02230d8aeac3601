// The listening side of a handshake from the moment the peer is introduced: it waits for the program's
// answer and carries it out.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "bootstrap/frame_stream.hpp"
#include "bootstrap/link.hpp"
#include "bootstrap/service.hpp"
#include "objects/endpoint_core.hpp"

namespace weft::core {

class ListenerCore;

// All functions with the service's mutex held, unless said otherwise.
class Arrival final : public Service::Handler,
                      public Attempt,
                      public Link::User,
                      public std::enable_shared_from_this<Arrival> {
 public:
  Arrival(ContextCore& context, std::weak_ptr<ListenerCore> listener, FrameStream stream, wire::Hello hello,
          std::uint16_t protocol, std::shared_ptr<Link> link);
  ~Arrival() override;
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

  void start();

  // ---- fixed once made; any thread
  [[nodiscard]] const SocketAddress& local_address() const noexcept { return local_; }
  [[nodiscard]] const SocketAddress& peer_address() const noexcept { return peer_; }
  [[nodiscard]] std::span<const std::byte> private_data() const noexcept { return hello_.private_data; }

  // The peer is still there and has no answer yet.
  [[nodiscard]] bool is_open() const noexcept { return stage_ == Stage::offered; }
  [[nodiscard]] const std::string& why_not_open() const noexcept { return why_; }
  // The endpoint that will carry the connection, when the program accepts.
  void prepare(std::shared_ptr<EndpointCore> endpoint);
  void accept(std::span<const std::byte> private_data, std::chrono::milliseconds timeout);
  void reject(std::span<const std::byte> private_data) noexcept;

  void on_ready(std::uint32_t events) override;
  void on_fault(std::string_view what) noexcept override;
  void on_link_lost(const std::string& why) override;
  void abandon(Status status, const std::string& text) noexcept override;
  void on_established() override;
  void on_resolved(Resolution) override {}

 private:
  enum class Stage : std::uint8_t { offered, accepting, establishing, confirming, over };

  void on_ready_frame();
  void finish();
  void send(const wire::Bytes& bytes);
  void fail(Status status, const std::string& text);
  void stop(const std::string& why) noexcept;

  ContextCore& context_;
  const std::weak_ptr<ListenerCore> listener_;
  FrameStream stream_;
  const wire::Hello hello_;
  const std::uint16_t protocol_;  // of the providers
  std::shared_ptr<Link> link_;
  SocketAddress local_;
  SocketAddress peer_;
  std::shared_ptr<EndpointCore> endpoint_;
  Service::Watch watch_ = 0;
  Timers::Id deadline_;
  Stage stage_ = Stage::offered;
  std::string why_;
};

}  // namespace weft::core
