// What the program's listener and request handles share.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "bootstrap/arrival.hpp"
#include "bootstrap/listener_core.hpp"
#include "objects/context_core.hpp"

namespace weft::core {

// The last one gone stops listening.
class ListenerHandle {
 public:
  ListenerHandle(std::shared_ptr<ContextState> context, std::shared_ptr<ListenerCore> core) noexcept
      : context_(std::move(context)), core_(std::move(core)) {}
  ~ListenerHandle();
  ListenerHandle(const ListenerHandle&) = delete;
  ListenerHandle& operator=(const ListenerHandle&) = delete;

  [[nodiscard]] ListenerCore& core() const noexcept { return *core_; }
  [[nodiscard]] ContextCore& context() const noexcept { return context_->core(); }
  [[nodiscard]] const std::shared_ptr<ContextState>& context_state() const noexcept { return context_; }

 private:
  std::shared_ptr<ContextState> context_;  // destroyed last
  std::shared_ptr<ListenerCore> core_;
};

// The last one gone rejects what was not answered.
class RequestHandle {
 public:
  RequestHandle(std::shared_ptr<ContextState> context, std::shared_ptr<Arrival> arrival) noexcept
      : context_(std::move(context)), arrival_(std::move(arrival)) {}
  ~RequestHandle();
  RequestHandle(const RequestHandle&) = delete;
  RequestHandle& operator=(const RequestHandle&) = delete;

  [[nodiscard]] Arrival& arrival() const noexcept { return *arrival_; }
  [[nodiscard]] ContextCore& context() const noexcept { return context_->core(); }

  // These throw Error as ConnectionRequest does.
  [[nodiscard]] std::shared_ptr<EndpointHandle> prepare(const EndpointOptions& options);
  void accept();
  void reject(std::span<const std::byte> private_data);

 private:
  void check_open(const char* what) const;

  std::shared_ptr<ContextState> context_;  // destroyed last
  std::shared_ptr<Arrival> arrival_;
  // With the context's mutex held:
  bool prepared_ = false;
  bool answered_ = false;
  std::vector<std::byte> private_data_;
  std::chrono::milliseconds timeout_{0};
};

}  // namespace weft::core
