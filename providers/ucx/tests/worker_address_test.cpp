#include "worker_address.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "library.hpp"

namespace weft::ucx {
namespace {

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
  explicit Worker(const char* lanes) : library_(open_library(host_, lanes_named(lanes), {})) {
    worker_ = make_worker(library_.context.get());
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
  // As the provider meets a peer: makes an endpoint, sends, moves on for a while, closes by force.
  void meet(std::span<const std::byte> address) {
    ucp_ep_params_t parameters{};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    ucp_ep_h endpoint = nullptr;
    if (ucp_ep_create(worker_, &parameters, &endpoint) != UCS_OK) return;
    ucp_request_param_t none{};
    release(ucp_am_send_nbx(endpoint, 1, nullptr, 0, "x", 1, &none));
    for (int i = 0; i < 20; ++i) ucp_worker_progress(worker_);
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

class WorkerAddresses : public testing::TestWithParam<const char*> {};

TEST_P(WorkerAddresses, OfWorkersAreGood) {
  const Worker one(GetParam());
  const Worker other(GetParam());
  EXPECT_EQ(why_not(one.address(), other.address()), "");
  EXPECT_EQ(why_not(one.address(), one.address()), "");
  WorkerAddress parts;
  ASSERT_TRUE(WorkerAddress::parse(one.address(), parts));
  EXPECT_FALSE(parts.entries.empty());
}

TEST_P(WorkerAddresses, CutOrLengthenedAreRefused) {
  const Worker one(GetParam());
  std::vector<std::byte> bytes = one.address();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_NE(why_not(one.address(), std::span(bytes).first(length)), "") << length;
  bytes.push_back(std::byte{0});
  EXPECT_NE(why_not(one.address(), bytes), "");
}

// What is let through does not end the process, whatever stands in it.
TEST_P(WorkerAddresses, AlteredOnesAreRefusedOrHarmless) {
  Worker one(GetParam());
  const Worker other(GetParam());
  std::mt19937 random(7);
  int refused = 0;
  constexpr int rounds = 400;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::byte> bytes = other.address();
    const auto position =
        round < static_cast<int>(bytes.size()) ? static_cast<std::size_t>(round) : random() % bytes.size();
    bytes[position] ^= static_cast<std::byte>(1U << (random() % 8));
    if (!why_not(one.address(), bytes).empty()) {
      ++refused;
    } else {
      one.meet(bytes);
    }
  }
  EXPECT_GT(refused, rounds / 8);
  EXPECT_LT(refused, rounds);
}

INSTANTIATE_TEST_SUITE_P(Lanes, WorkerAddresses, testing::Values("tcp", "shm", ""), [](const auto& info) {
  return *info.param == '\0' ? "all" : std::string(info.param);
});

}  // namespace
}  // namespace weft::ucx
