// One end of a connection, on plain verbs, for the tests: everything opened, registered and created.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace fakeverbs_test {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Deadlines are long: they only bound how long a failing test takes.
constexpr auto patience = 20s;

constexpr int all_rights =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* object) const {
    EXPECT_EQ(Destroy(object), 0);
  }
};

using ContextHandle = std::unique_ptr<ibv_context, Destroyer<&ibv_close_device>>;
using DomainHandle = std::unique_ptr<ibv_pd, Destroyer<&ibv_dealloc_pd>>;
using RegionHandle = std::unique_ptr<ibv_mr, Destroyer<&ibv_dereg_mr>>;
using ChannelHandle = std::unique_ptr<ibv_comp_channel, Destroyer<&ibv_destroy_comp_channel>>;
using QueueHandle = std::unique_ptr<ibv_cq, Destroyer<&ibv_destroy_cq>>;
using PoolHandle = std::unique_ptr<ibv_srq, Destroyer<&ibv_destroy_srq>>;
using PairHandle = std::unique_ptr<ibv_qp, Destroyer<&ibv_destroy_qp>>;

// The device named by FAKEVERBS_TEST_DEVICE, or the first.
[[nodiscard]] ContextHandle open_device();
// The first RoCE v2 address that stands for an IPv4 one.
[[nodiscard]] ibv_gid_entry find_gid(ibv_context* context);
// Of this project's own device; some tests are about what Soft-RoCE does not have.
[[nodiscard]] bool is_fake(ibv_context* context);

// What the other end must know, as it would travel over a socket.
struct Address {
  ibv_gid gid;
  std::uint32_t number;
  std::uint32_t sequence;
  std::uint64_t memory;
  std::uint32_t key;
};

struct SideOptions {
  std::size_t bytes = 64 * 1024;
  std::uint32_t send_depth = 64;
  std::uint32_t receive_depth = 64;
  std::uint32_t segments = 4;
  std::uint32_t inline_bytes = 64;
  int entries = 256;
  bool signal_all = false;
  bool shared_receives = false;
  int rights = all_rights;
  unsigned pair_rights = all_rights;
};

struct ConnectOptions {
  std::uint8_t timeout = 8;  // about a millisecond
  std::uint8_t retries = 3;
  std::uint8_t receiver_retries = 7;
  std::uint8_t receiver_timer = 1;  // 10 us
  std::uint8_t reads = 4;
};

class Side {
 public:
  explicit Side(const SideOptions& options = {});

  [[nodiscard]] Address address() const;
  [[nodiscard]] int to_init();
  [[nodiscard]] int to_ready_to_receive(const Address& peer, const ConnectOptions& options = {});
  [[nodiscard]] int to_ready_to_send(const ConnectOptions& options = {});
  [[nodiscard]] int to(ibv_qp_state state);
  void connect(const Address& peer, const ConnectOptions& options = {});
  [[nodiscard]] ibv_qp_state state() const;

  [[nodiscard]] std::byte* at(std::size_t offset) { return memory.data() + offset; }
  [[nodiscard]] ibv_sge segment(std::size_t offset, std::uint32_t length) const;
  void fill(std::size_t offset, std::size_t length, int seed);
  [[nodiscard]] bool holds(std::size_t offset, std::size_t length, int seed) const;

  [[nodiscard]] int post_receive(std::uint64_t id, std::vector<ibv_sge> segments);
  [[nodiscard]] int post(ibv_send_wr request, std::vector<ibv_sge> segments);
  // Requests with a completion each; the segments start at offset 0 unless given.
  [[nodiscard]] int send(std::uint64_t id, std::size_t offset, std::uint32_t length, unsigned flags = 0);
  [[nodiscard]] int write(std::uint64_t id, std::size_t offset, std::uint32_t length, const Address& peer,
                          std::size_t remote_offset);
  [[nodiscard]] int read(std::uint64_t id, std::size_t offset, std::uint32_t length, const Address& peer,
                         std::size_t remote_offset);

  // The next entry; none within the time.
  [[nodiscard]] std::optional<ibv_wc> next(Clock::duration time = patience);
  [[nodiscard]] std::optional<ibv_wc> next_received(Clock::duration time = patience);
  // The next asynchronous event, acknowledged.
  [[nodiscard]] std::optional<ibv_event_type> next_event(Clock::duration time = patience);

  SideOptions options;
  ContextHandle context;
  ibv_gid_entry gid;
  DomainHandle domain;
  std::vector<std::byte> memory;
  RegionHandle region;
  ChannelHandle channel;
  QueueHandle sends;
  QueueHandle receives;
  PoolHandle pool;
  PairHandle pair;
};

// Two sides in this process, connected.
struct Link {
  explicit Link(const SideOptions& both = {}) : Link(both, both) {}
  explicit Link(const ConnectOptions& connecting) : Link({}, {}, connecting) {}
  Link(const SideOptions& first, const SideOptions& second, const ConnectOptions& connecting = {});
  Side a;
  Side b;
};

[[nodiscard]] std::optional<ibv_wc> poll_until(ibv_cq* queue, Clock::duration time);
[[nodiscard]] bool eventually(const std::function<bool()>& condition, Clock::duration time = patience);

#define EXPECT_COMPLETED(entry, id, expected_status)                                                      \
  do {                                                                                                    \
    const auto checked_entry = (entry);                                                                   \
    ASSERT_TRUE(checked_entry.has_value()) << "no completion";                                            \
    EXPECT_EQ(checked_entry->wr_id, std::uint64_t{id});                                                   \
    EXPECT_EQ(ibv_wc_status_str(checked_entry->status), std::string(ibv_wc_status_str(expected_status))); \
  } while (false)

}  // namespace fakeverbs_test
