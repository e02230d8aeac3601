// A UCX worker as the provider makes them, alone.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "library.hpp"

namespace weft::ucx {

class QuietHost final : public provider::Host {
 public:
  void log(LogLevel /*level*/, std::string_view /*line*/) noexcept override {}
  [[nodiscard]] bool logs(LogLevel /*level*/) const noexcept override { return false; }
  [[nodiscard]] std::optional<std::string> variable(std::string_view /*name*/) const override {
    return std::nullopt;
  }
  void random_bytes(std::span<std::byte> /*out*/) const override {}
};

// A context with a worker of this process, and its address.
class Worker {
 public:
  explicit Worker(const char* lanes, const char* device = "", std::uint64_t number = 0)
      : library_(open_library(host_, lanes_named(lanes), device)) {
    worker_ = make_worker(library_.context.get(), number);
    ucp_address_t* address = nullptr;
    std::size_t length = 0;
    EXPECT_EQ(ucp_worker_get_address(worker_, &address, &length), UCS_OK);
    address_.resize(length);
    std::memcpy(address_.data(), address, length);
    ucp_worker_release_address(worker_, address);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() { ucp_worker_destroy(worker_); }

  [[nodiscard]] const std::vector<std::byte>& address() const { return address_; }
  [[nodiscard]] const Library& library() const { return library_; }
  [[nodiscard]] ucp_worker_h handle() const { return worker_; }
  void progress() { ucp_worker_progress(worker_); }
  void on_message(ucp_am_recv_callback_t call, void* data) {
    ucp_am_handler_param_t handler{};
    handler.field_mask =
        UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = 1;
    handler.cb = call;
    handler.arg = data;
    EXPECT_EQ(ucp_worker_set_am_recv_handler(worker_, &handler), UCS_OK);
  }
  // Null when UCX refuses.
  [[nodiscard]] ucp_ep_h connect(std::span<const std::byte> address) {
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    ucp_ep_h endpoint = nullptr;
    return ucp_ep_create(worker_, &parameters, &endpoint) == UCS_OK ? endpoint : nullptr;
  }
  // As the provider meets a peer: makes an endpoint, sends, moves on for a while, closes by force.
  void meet(std::span<const std::byte> address) {
    const ucp_ep_h endpoint = connect(address);
    if (endpoint == nullptr) return;
    ucp_request_param_t none{};
    release(ucp_am_send_nbx(endpoint, 1, nullptr, 0, "x", 1, &none));
    for (int i = 0; i < 20; ++i) ucp_worker_progress(worker_);
    close(endpoint);
  }
  // By force.
  void close(ucp_ep_h endpoint) {
    ucp_request_param_t none{};
    none.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    none.flags = UCP_EP_CLOSE_FLAG_FORCE;
    release(ucp_ep_close_nbx(endpoint, &none));
    for (int i = 0; i < 20; ++i) ucp_worker_progress(worker_);
  }

 private:
  static void release(ucs_status_ptr_t request) {
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }

  QuietHost host_;
  Library library_;
  ucp_worker_h worker_ = nullptr;
  std::vector<std::byte> address_;
};

}  // namespace weft::ucx
