// What the two halves of every workload have in common: they find each other, meet, and count messages.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../../buffers.hpp"
#include "../../role.hpp"
#include "link.hpp"

namespace perf::ucx {

/// A link that counts what arrives and keeps the last small message.
class Half : public Link {
 public:
  explicit Half(Lanes lanes) : Link(lanes) {}

  [[nodiscard]] std::uint64_t arrived() const { return arrived_; }
  void await(std::uint64_t arrivals) {
    while (arrived_ < arrivals) progress();
  }
  /// A message of the halves' own, beside the workload's.
  void tell(std::span<const std::byte> bytes) {
    send(bytes.data(), bytes.size());
    wait_for_all();
  }
  [[nodiscard]] const std::vector<std::byte>& last() const { return last_; }

 protected:
  void on_message(const std::byte* bytes, std::size_t length) override {
    last_.assign(bytes, bytes + length);
    ++arrived_;
  }
  std::byte* place_for(std::size_t length) override {
    last_.resize(length);
    return last_.data();
  }
  void count_arrival() { ++arrived_; }

 private:
  std::vector<std::byte> last_;
  std::uint64_t arrived_ = 0;
};

/// The server tells its worker's address as text; the client's comes as its first message, and one in answer
/// says that the server is connected. On rc the address is that of a listener.
inline void accept_peer(Half& half) {
  if (half.is_visited()) {
    half.admit_visitor();
  } else {
    half.await(1);
    half.connect(half.last());
  }
  const std::byte connected{};
  half.tell({&connected, 1});
}
inline void reach_peer(Half& half, const std::string& address) {
  half.connect(from_text(address));
  if (!half.is_visited()) half.tell(half.worker_address());
  half.await(1);
}

/// Untimed round trips; each side has told and heard as many. Returns how many messages had arrived by then;
/// what the peer sent since may be there already, since one step of UCX brings all that has come.
inline std::uint64_t meet(Half& half, bool first) {
  const std::byte token{};
  std::uint64_t heard = half.arrived();
  for (int round = 0; round < meeting_rounds; ++round) {
    ++heard;
    if (!first) half.await(heard);
    half.tell({&token, 1});
    if (first) half.await(heard);
  }
  return heard;
}

}  // namespace perf::ucx
