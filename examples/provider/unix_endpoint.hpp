// One end of a connection: the engine's stream of frames through a Unix-domain socket.
#pragma once

#include <optional>
#include <vector>

#include "rendezvous.hpp"
#include "weft/engine/descriptor_endpoint.hpp"

namespace unix_provider {

class UnixContext;

class UnixEndpoint final : public weft::engine::DescriptorEndpoint {
 public:
  UnixEndpoint(UnixContext& context, weft::engine::DescriptorQueue& queue,
               const weft::provider::EndpointRequest& request);

  // ---- making the connection
  [[nodiscard]] std::vector<std::byte> blob(const weft::provider::PathAddresses& path) override;
  bool establish(const weft::provider::PeerParameters& peer) override;

 protected:
  // ---- moving bytes
  [[nodiscard]] int take_descriptor() noexcept override { return socket_.release(); }
  [[nodiscard]] bool receive_some() noexcept override;
  std::ptrdiff_t transmit(const iovec* pieces, int count) noexcept override;
  void close_in_child() noexcept override;

 private:
  UnixContext& unix_context_;
  std::optional<Rendezvous> rendezvous_;  // until the peer has come
  Descriptor socket_;                     // until the engine takes it
};

}  // namespace unix_provider
