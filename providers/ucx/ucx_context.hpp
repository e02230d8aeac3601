// A UCX context: the engine over workers, one for each completion queue.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "common/message_context.hpp"
#include "library.hpp"

namespace weft::ucx {

class UcxContext final : public engine::MessageContext {
 public:
  UcxContext(provider::Host& host, const provider::OpenRequest& request, Library library);
  ~UcxContext() override;

  [[nodiscard]] const Attributes& attributes() const noexcept override { return attributes_; }
  [[nodiscard]] ProtocolRange protocol() const noexcept override { return {1, 1}; }
  [[nodiscard]] std::unique_ptr<provider::CompletionQueue> create_completion_queue(
      std::uint32_t capacity, provider::QueueEvents& events) override;
  [[nodiscard]] std::unique_ptr<provider::Endpoint> prepare_endpoint(
      const provider::EndpointRequest& request) override;

  [[nodiscard]] const Library& library() const noexcept { return library_; }
  [[nodiscard]] std::chrono::milliseconds peer_timeout() const noexcept { return peer_timeout_; }
  // A worker of it cannot be ended, so it stays for the life of the process.
  void keep_library() noexcept { kept_ = true; }

 private:
  Library library_;
  const pid_t owner_;
  const std::chrono::milliseconds peer_timeout_;
  bool kept_ = false;
  Attributes attributes_;
};

}  // namespace weft::ucx
