// An open device of the verbs provider.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "common/regions.hpp"
#include "counts.hpp"
#include "fabric.hpp"
#include "weft/provider/context.hpp"

namespace weft::verbs {

class Queue;

class Context final : public provider::Context {
 public:
  Context(provider::Host& host, Port port, const provider::OpenRequest& request,
          const FabricOptions& options);
  ~Context() override;

  [[nodiscard]] const Attributes& attributes() const noexcept override { return attributes_; }
  [[nodiscard]] std::vector<Counter> counters() const override;
  [[nodiscard]] bool keeps_connection() const noexcept override { return false; }
  [[nodiscard]] ProtocolRange protocol() const noexcept override { return {1, 1}; }
  [[nodiscard]] std::unique_ptr<provider::CompletionQueue> create_completion_queue(
      std::uint32_t capacity, provider::QueueEvents& events) override;
  [[nodiscard]] std::unique_ptr<provider::ReceiveQueue> create_receive_queue(
      provider::CompletionQueue& queue, std::uint32_t depth, std::uint64_t user_value) override;
  [[nodiscard]] std::unique_ptr<provider::MemoryRegion> register_memory(
      const RegistrationRequest& request) override;
  [[nodiscard]] std::unique_ptr<provider::Endpoint> prepare_endpoint(
      const provider::EndpointRequest& request) override;
  Clock::time_point service(Clock::time_point now) noexcept override;
  [[nodiscard]] int service_descriptor() noexcept override { return fabric_.device()->async_fd; }
  void enter_child() noexcept override;

  [[nodiscard]] Fabric& fabric() noexcept { return fabric_; }
  [[nodiscard]] const Fabric& fabric() const noexcept { return fabric_; }
  [[nodiscard]] ThreadMode thread_mode() const noexcept { return attributes_.thread_mode; }
  [[nodiscard]] engine::RegionTable& regions() noexcept { return regions_; }
  [[nodiscard]] const engine::RegionTable& regions() const noexcept { return regions_; }

  // What the device does in one work request.
  [[nodiscard]] std::uint32_t device_segments() const noexcept { return device_segments_; }
  [[nodiscard]] std::uint64_t longest_piece() const noexcept { return longest_piece_; }
  [[nodiscard]] std::uint32_t reads_out() const noexcept { return reads_out_; }
  [[nodiscard]] std::uint32_t reads_in() const noexcept { return reads_in_; }
  // Requests are handed over one by one (ibv_wr_*) where the device has that.
  [[nodiscard]] bool extended() const noexcept { return extended_.load(std::memory_order_relaxed); }
  void no_extended_posting() noexcept { extended_.store(false, std::memory_order_relaxed); }

  // Entries are read field by field (ibv_cq_ex) where the device has that.
  [[nodiscard]] bool extended_entries() const noexcept {
    return extended_entries_.load(std::memory_order_relaxed);
  }
  void no_extended_entries() noexcept { extended_entries_.store(false, std::memory_order_relaxed); }

  // The helper is to come soon; a system call unless it does anyway.
  void request_service() noexcept;
  void expect_service() noexcept {
    if (!service_is_near()) [[unlikely]]
      request_service();
  }
  [[nodiscard]] bool service_is_near() const noexcept {
    return service_is_near_.load(std::memory_order_relaxed);
  }

  // For regions. busy: a local operation uses it. ok: none does, and none can any more.
  Status retire_region(std::uint64_t token) noexcept;
  void collect_users(std::uint64_t token, bool all, std::vector<std::uint32_t>& endpoint_ids);
  void cancel_shared_receives(std::uint64_t token) noexcept;

  void forget(Queue& queue) noexcept;
  void note_pair_gone() noexcept { pairs_gone_.fetch_add(1); }
  [[nodiscard]] std::uint64_t pairs_gone() const noexcept { return pairs_gone_.load(); }

 private:
  // Destroys the pair of an endpoint that ended, where there is one, without waiting for the helper's round.
  bool release_ended_pair() noexcept;
  void read_events() noexcept;
  void tell_pair(const ibv_qp* pair, std::string_view text) noexcept;
  void tell_all(std::string_view text) noexcept;

  provider::Host& host_;
  provider::ContextEvents* events_;
  Attributes attributes_;
  Fabric fabric_;
  const std::chrono::milliseconds peer_timeout_;
  std::uint32_t device_segments_;
  std::uint64_t longest_piece_;
  std::uint32_t reads_out_;
  std::uint32_t reads_in_;
  std::atomic<bool> extended_;
  std::atomic<bool> extended_entries_;
  engine::RegionTable regions_;
  std::atomic<bool> service_is_near_{false};
  std::atomic<std::uint64_t> pairs_gone_{0};  // destroyed since the context was opened
  mutable std::mutex queues_mutex_;
  std::vector<Queue*> queues_;
  std::array<std::uint64_t, count_names> counted_before_{};  // by queues that are gone
  Clock::time_point port_down_since_ = Clock::time_point::max();
};

}  // namespace weft::verbs
