// What the program's endpoint handles share. The last one gone closes the endpoint (ERR-5).
#pragma once

#include <memory>

#include "objects/context_core.hpp"
#include "objects/endpoint_core.hpp"

namespace weft::core {

class EndpointHandle {
 public:
  EndpointHandle(std::shared_ptr<ContextState> context, std::shared_ptr<EndpointCore> core) noexcept
      : context_(std::move(context)), core_(std::move(core)) {}
  ~EndpointHandle();
  EndpointHandle(const EndpointHandle&) = delete;
  EndpointHandle& operator=(const EndpointHandle&) = delete;

  [[nodiscard]] provider::Endpoint& provider() const noexcept { return core_->provider(); }
  [[nodiscard]] EndpointCore& core() const noexcept { return *core_; }
  [[nodiscard]] const std::shared_ptr<EndpointCore>& shared() const noexcept { return core_; }
  [[nodiscard]] ContextCore& context() const noexcept { return core_->context(); }
  [[nodiscard]] const std::shared_ptr<ContextState>& context_state() const noexcept { return context_; }

 private:
  std::shared_ptr<ContextState> context_;  // destroyed last
  std::shared_ptr<EndpointCore> core_;
};

// What RemoteMemory handles share: the last one gone releases the key.
class RemoteHandle {
 public:
  RemoteHandle(std::shared_ptr<ContextState> context, std::weak_ptr<EndpointCore> endpoint,
               std::uint64_t token) noexcept
      : context_(std::move(context)), endpoint_(std::move(endpoint)), token_(token) {}
  ~RemoteHandle();
  RemoteHandle(const RemoteHandle&) = delete;
  RemoteHandle& operator=(const RemoteHandle&) = delete;

 private:
  std::shared_ptr<ContextState> context_;  // destroyed last
  std::weak_ptr<EndpointCore> endpoint_;   // keeps no endpoint alive
  const std::uint64_t token_;
};

}  // namespace weft::core
