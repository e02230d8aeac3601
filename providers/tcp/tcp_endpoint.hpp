// An endpoint over one non-blocking TCP socket: the engine's stream of frames is the socket's stream of
// bytes.
#pragma once

#include "common/descriptor_endpoint.hpp"

namespace weft::tcp {

class TcpContext;

class TcpEndpoint final : public engine::DescriptorEndpoint {
 public:
  TcpEndpoint(TcpContext& context, engine::DescriptorQueue& queue, const provider::EndpointRequest& request);

  bool establish(const provider::PeerParameters& peer) override;

 protected:
  [[nodiscard]] int take_descriptor() noexcept override;
  [[nodiscard]] bool receive_some() noexcept override;
  [[nodiscard]] bool receive_rest(std::ptrdiff_t length) noexcept override;
  std::ptrdiff_t transmit(const iovec* pieces, int count) noexcept override;

 private:
  [[nodiscard]] std::ptrdiff_t receive_once(std::size_t& wanted) noexcept;
  [[nodiscard]] bool receive_run(bool any) noexcept;
  [[nodiscard]] bool judge(std::ptrdiff_t length, bool any) noexcept;

  int connection_ = -1;  // the core's until the endpoint goes up
};

}  // namespace weft::tcp
