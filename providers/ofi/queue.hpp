// A completion queue over ports of libfabric: one, or where endpoints are bound to addresses of this host,
// one for each address at which peers reached this side.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "common/message_queue.hpp"
#include "port.hpp"
#include "pull_port.hpp"

namespace weft::ofi {

class OfiContext;
class OfiEndpoint;

class OfiQueue final : public engine::MessageQueue, private PortEvents {
 public:
  // Throws Error.
  OfiQueue(OfiContext& context, std::uint32_t capacity, provider::QueueEvents& events);
  ~OfiQueue() override;

  void close_in_child() noexcept override;
  void serve() noexcept override;

  // The port for a connection whose own end is at that sockaddr; made when it is the first. Throws Error.
  [[nodiscard]] Port& port_at(std::span<const std::byte> local_address);

  // ---- for endpoints that fetch payload, with the gate held
  // Throws Error.
  void watch(PullPort& port);
  // Closes it.
  void drop(PullPort& port) noexcept;
  void want_pull_port(OfiEndpoint& endpoint) noexcept;
  void want_no_pull_port(OfiEndpoint& endpoint) noexcept { std::erase(wanting_, &endpoint); }
  using MessageQueue::in_child;
  using MessageQueue::pull_failed;
  using MessageQueue::pulled;

 private:
  struct Place {
    std::vector<std::byte> address;
    std::shared_ptr<Port> port;
  };

  bool progress() noexcept override;
  [[nodiscard]] bool arm_fabric() noexcept override;
  [[nodiscard]] bool progress_pull_ports() noexcept;
  void* register_buffers(std::byte* bytes, std::size_t length) override;
  void on_message(const std::byte* bytes, std::size_t length) noexcept override {
    message_arrived(bytes, length);
  }
  void on_message(const engine::message::Header& header, const std::byte* payload,
                  std::size_t length) noexcept override {
    message_arrived(header, payload, length);
  }
  void on_sent(engine::SendBuffer& buffer) noexcept override { sent(buffer); }
  void on_send_failed(engine::SendBuffer& buffer, std::int32_t code) noexcept override;
  Port& open_port(std::vector<std::byte> address);

  OfiContext& context_;
  std::vector<Place> places_;
  std::vector<PullPort*> pull_ports_;
  std::vector<OfiEndpoint*> wanting_;  // endpoints that have use for one
  std::atomic<bool> wanted_{false};
  bool look_everywhere_ = false;  // what an idle pull port's descriptor tells of
};

}  // namespace weft::ofi
