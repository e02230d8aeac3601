// What the engine's endpoints share: regions, groups, limits.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "endpoint.hpp"
#include "group.hpp"
#include "regions.hpp"
#include "weft/provider/context.hpp"
#include "weft/provider/provider.hpp"
#include "weft/provider/strict.hpp"

namespace weft::engine {

struct EngineOptions {
  std::uint64_t window =
      std::uint64_t{64} * 1024;              // bytes of unexpected messages per endpoint, a multiple of 64
  std::uint32_t max_outstanding_reads = 64;  // a power of two
  std::uint32_t frame_payload = std::uint32_t{1024} * 1024;  // largest payload of one frame
  std::uint32_t copy_below = 1024;  // payload up to this length is copied into the frame buffer
  std::uint32_t offer_from =
      0;  // from this length on payload is offered to a peer that can fetch it; 0: never
  std::uint32_t fetches_at_once = 1;  // of one endpoint; at most Offers::most_fetches
  // No further one begins ahead while so much is still to come of those under way: deregistering memory waits
  // for them.
  std::uint64_t fetch_bytes_at_once = std::uint64_t{16} * 1024 * 1024;
};

class Context : public provider::Context, public provider::StrictSwitches {
 public:
  Context(provider::Host& host, const provider::OpenRequest& request, const EngineOptions& options);
  ~Context() override;

  [[nodiscard]] std::unique_ptr<provider::MemoryRegion> register_memory(
      const RegistrationRequest& request) override;
  [[nodiscard]] std::unique_ptr<provider::ReceiveQueue> create_receive_queue(
      provider::CompletionQueue& queue, std::uint32_t depth, std::uint64_t user_value) override;
  [[nodiscard]] std::vector<Counter> counters() const override;
  void enter_child() noexcept override;
  bool complete_sends_when_matched() noexcept override { return strict_sends_ = true; }
  bool hold_writes() noexcept override { return strict_writes_ = true; }

  // What the two switches above came to, for the endpoints made from now on.
  [[nodiscard]] bool strict_sends() const noexcept { return strict_sends_; }
  [[nodiscard]] bool strict_writes() const noexcept { return strict_writes_; }
  [[nodiscard]] RegionTable& regions() noexcept { return regions_; }
  [[nodiscard]] const EngineOptions& options() const noexcept { return options_; }
  [[nodiscard]] ThreadMode thread_mode() const noexcept { return thread_mode_; }
  [[nodiscard]] const Limits& limits() const noexcept { return limits_; }
  [[nodiscard]] provider::Host& host() noexcept { return host_; }

  void add_group(Group& group);
  void remove_group(Group& group) noexcept;

  // For MemoryRegion of the engine.
  Status deregister(std::uint64_t token) noexcept;
  void collect_users(std::uint64_t token, std::vector<std::uint32_t>& endpoint_ids);
  void cancel_shared_receives(std::uint64_t token) noexcept;

 protected:
  // A copy, for looking at each without holding the list's lock.
  [[nodiscard]] std::vector<Group*> groups() const;
  // Limits and the like that come from the engine; the transport fills in its own part.
  void fill_attributes(Attributes& attributes) const;

 private:
  provider::Host& host_;
  const ThreadMode thread_mode_;
  const ProgressMode progress_mode_;
  const EngineOptions options_;
  Limits limits_;
  RegionTable regions_;
  bool strict_sends_ = false;  // set while the context opens, before anybody else knows it
  bool strict_writes_ = false;
  mutable std::mutex groups_mutex_;
  std::vector<Group*> groups_;
  std::array<std::uint64_t, 5> counted_before_{};  // by groups that are gone
};

}  // namespace weft::engine
