// An open fabric of libfabric: the engine over reliable datagrams.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "common/message_context.hpp"
#include "device.hpp"

namespace weft::ofi {

class OfiContext final : public engine::MessageContext {
 public:
  OfiContext(provider::Host& host, const provider::OpenRequest& request, std::unique_ptr<Device> device,
             const engine::EngineOptions& engine_options, const engine::MessageOptions& options);
  ~OfiContext() override;

  [[nodiscard]] const Attributes& attributes() const noexcept override { return attributes_; }
  [[nodiscard]] ProtocolRange protocol() const noexcept override { return {4, 4}; }
  [[nodiscard]] std::unique_ptr<provider::CompletionQueue> create_completion_queue(
      std::uint32_t capacity, provider::QueueEvents& events) override;
  [[nodiscard]] std::unique_ptr<provider::Endpoint> prepare_endpoint(
      const provider::EndpointRequest& request) override;

  [[nodiscard]] const Fabric& fabric() const noexcept { return device_->fabric(); }
  // The fabric once more, bound to that sockaddr; empty where addresses are not used. Throws Error.
  [[nodiscard]] std::unique_ptr<Device> open_device(std::span<const std::byte> address) const {
    return std::make_unique<Device>(fabric(), address, interface_);
  }
  static constexpr std::uint32_t most_pull_ports = 64;
  // Endpoints that fetch and offer payload by an endpoint of libfabric's own; false when there are enough.
  [[nodiscard]] bool take_pull_port() noexcept {
    if (pull_ports_.fetch_add(1) < most_pull_ports) return true;
    pull_ports_.fetch_sub(1);
    return false;
  }
  void give_pull_port() noexcept { pull_ports_.fetch_sub(1); }
  // In a forked child the fabric stays the parent's.
  void abandon_device() noexcept { abandoned_ = true; }

 private:
  const std::string interface_;
  std::unique_ptr<Device> device_;
  Attributes attributes_;
  std::atomic<std::uint32_t> pull_ports_{0};
  bool abandoned_ = false;
};

}  // namespace weft::ofi
