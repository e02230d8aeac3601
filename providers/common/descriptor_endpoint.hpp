// An endpoint whose stream of bytes goes through a descriptor of its own, which epoll can watch. What is left
// to a transport: making the connection (establish), take_descriptor, receive_some and transmit.
#pragma once

#include <cstdint>

#include "descriptor_queue.hpp"
#include "endpoint.hpp"

namespace weft::engine {

class DescriptorContext;

class DescriptorEndpoint : public Endpoint {
 public:
  DescriptorEndpoint(DescriptorContext& context, DescriptorQueue& queue,
                     const provider::EndpointRequest& request);
  ~DescriptorEndpoint() override;

 protected:
  // ---- what a transport implements, besides transmit; called with the gate held
  // The descriptor, non-blocking and close-on-exec, when the endpoint goes up. From then on it is watched and
  // closed here.
  [[nodiscard]] virtual int take_descriptor() noexcept = 0;
  // Receives what is there, but not for long, so that the queue's other endpoints have their turn (PRG-1):
  // inbound() says where to, arrived() takes it; after a run of them settle(), and path_broken() when the
  // stream ended. True when anything came.
  [[nodiscard]] virtual bool receive_some() noexcept = 0;
  // As receive_some, when the queue has put `length` bytes into the group's scratch buffer already; zero at
  // the stream's end, -errno when receiving failed. Only asked of a context with a plain_receive().
  [[nodiscard]] virtual bool receive_rest(std::ptrdiff_t length) noexcept;

  // In a forked child (MEM-7): closes what would keep the connection up. A transport that holds a descriptor
  // before take_descriptor() closes it as well, then calls this.
  virtual void close_in_child() noexcept;

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  friend class DescriptorQueue;

  void attach() noexcept final;
  void detach() noexcept final;
  void output_waits(bool waits) noexcept final;
  // The descriptor may take more.
  void resume() noexcept { push_output(); }

  DescriptorQueue& queue_;
  bool waits_for_room_ = false;
  // Places in the queue's lists.
  std::uint32_t member_index_ = 0;
  std::uint32_t seat_ = 0;
  bool listed_ = false;          // driven by the queue
  bool watched_ = false;         // in the queue's epoll set
  bool watched_output_ = false;  // there for output as well
};

}  // namespace weft::engine
