// The dialing side of a handshake: look up the name, connect, introduce this side, wait for the peer's
// program.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/dial.hpp"
#include "bootstrap/frame_stream.hpp"
#include "bootstrap/link_table.hpp"
#include "bootstrap/service.hpp"
#include "objects/endpoint_core.hpp"

namespace weft::core {

// All functions with the service's mutex held.
class DialHandshake final : public Service::Handler,
                            public Attempt,
                            public Link::User,
                            public std::enable_shared_from_this<DialHandshake> {
 public:
  DialHandshake(std::shared_ptr<EndpointCore> endpoint, HostPort target, std::vector<std::byte> private_data);
  ~DialHandshake() override;
  DialHandshake(const DialHandshake&) = delete;
  DialHandshake& operator=(const DialHandshake&) = delete;

  // Until then the endpoint waits; after `timeout` it fails with timed_out.
  void start(std::chrono::milliseconds timeout);

  void on_ready(std::uint32_t events) override;
  void on_fault(std::string_view what) noexcept override;
  void on_link_lost(const std::string& why) override;
  void abandon(Status status, const std::string& text) noexcept override;
  void on_established() override;
  void on_resolved(Resolution resolution) override;

 private:
  enum class Stage : std::uint8_t {
    resolving,
    dialing,
    greeting,
    linking,
    waiting,
    establishing,
    confirming,
    over
  };

  void on_dialed(Dial::Answer answer);
  void on_frame(wire::FrameType type, const wire::Bytes& payload);
  void on_welcome(const wire::Welcome& welcome);
  void on_link(LinkTable::Answer answer);
  void on_accept(const wire::Accept& accept);
  void on_go();
  void send_hello();
  void send(const wire::Bytes& bytes);
  void fail(Status status, const std::string& text);
  void stop() noexcept;
  [[nodiscard]] std::string where() const;

  ContextCore& context_;
  std::shared_ptr<EndpointCore> endpoint_;
  const HostPort target_;
  const std::vector<std::byte> private_data_;
  Stage stage_ = Stage::resolving;
  Timers::Id deadline_;
  std::shared_ptr<Dial> dial_;
  FrameStream stream_;
  Service::Watch watch_ = 0;
  std::shared_ptr<Link> link_;
  std::uint16_t protocol_ = 0;  // of the providers
};

}  // namespace weft::core
