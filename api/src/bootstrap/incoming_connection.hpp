// A connection that a listener took and that has not yet shown what it is. Everything on it is from a
// stranger: bounded in number, size and time, and dropped when it makes no sense (CON-7, SEC-1).
#pragma once

#include <memory>
#include <string>

#include "bootstrap/frame_stream.hpp"
#include "bootstrap/service.hpp"
#include "bootstrap/wire.hpp"

namespace weft::core {

class ContextCore;
class ListenerCore;

// All functions with the service's mutex held.
class IncomingConnection final : public Service::Handler,
                                 public std::enable_shared_from_this<IncomingConnection> {
 public:
  IncomingConnection(ContextCore& context, std::weak_ptr<ListenerCore> listener, Descriptor socket);

  void start();
  // Says why and closes.
  void refuse(Status status, const std::string& text) noexcept;
  [[nodiscard]] bool is_from(const ListenerCore& listener) const noexcept;

  void on_ready(std::uint32_t events) override;
  void on_fault(std::string_view what) noexcept override;

 private:
  enum class Stage : std::uint8_t { preamble, first_frame, linking, over };

  void on_preamble(const wire::Preamble& preamble);
  void on_frame(wire::FrameType type, const wire::Bytes& payload);
  void on_hello(wire::Hello hello);
  void on_link(const wire::LinkHello& hello);
  void on_linked(const wire::Linked& linked);
  void drop(const std::string& why) noexcept;
  void stop() noexcept;
  [[nodiscard]] std::string peer() const;

  ContextCore& context_;
  const std::weak_ptr<ListenerCore> listener_;
  FrameStream stream_;
  Service::Watch watch_ = 0;
  Timers::Id deadline_;
  Stage stage_ = Stage::preamble;
  wire::Preamble preamble_;
  wire::Hello hello_;
  wire::Id token_{};
  std::uint16_t protocol_ = 0;  // of the providers
};

}  // namespace weft::core
