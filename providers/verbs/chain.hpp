// Work requests that go to the device with one call. Kept between calls, linked once and for all, so that a
// request costs only the fields it sets.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::verbs {

inline constexpr std::uint32_t segments_per_request = 4;  // OPS-7
inline constexpr std::size_t chain_length = 32;
// What a place of the device says of a segment that is this long or longer.
inline constexpr std::uint32_t longest_place = 1U << 31;

template <class Request>
class LinkedRequests {
 public:
  LinkedRequests() noexcept {
    for (std::size_t i = 0; i < chain_length; ++i) {
      requests_[i].sg_list = places_[i].data();
      requests_[i].next = i + 1 < chain_length ? &requests_[i + 1] : nullptr;
    }
  }
  LinkedRequests(const LinkedRequests&) = delete;
  LinkedRequests& operator=(const LinkedRequests&) = delete;

  [[nodiscard]] bool full() const noexcept { return count_ == chain_length; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t room() const noexcept { return chain_length - count_; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  // The next request and its places; they count only after take().
  [[nodiscard]] Request& next() noexcept { return requests_[count_]; }
  [[nodiscard]] ibv_sge* places() noexcept { return places_[count_].data(); }
  void take(std::size_t count = 1) noexcept { count_ += count; }
  // Forgets them; they can still be read with at().
  void clear() noexcept { count_ = 0; }
  [[nodiscard]] Request& at(std::size_t index) noexcept { return requests_[index]; }

  // Hands all of them over by `post` (which returns a verbs error number and tells the first request not
  // taken), and is empty then. Returns how many were taken.
  template <class Post>
  [[nodiscard]] std::size_t hand_over(Post&& post, int& code) noexcept {
    const std::size_t count = count_;
    Request& last = requests_[count - 1];
    Request* const after = last.next;
    last.next = nullptr;
    Request* refused = nullptr;
    code = post(requests_.data(), &refused);
    last.next = after;
    count_ = 0;
    if (code == 0) [[likely]]
      return count;
    return refused == nullptr ? 0 : static_cast<std::size_t>(refused - requests_.data());
  }

 private:
  std::array<Request, chain_length> requests_{};
  std::array<std::array<ibv_sge, segments_per_request>, chain_length> places_{};
  std::size_t count_ = 0;
};

class Chain : public LinkedRequests<ibv_send_wr> {
 public:
  std::uint32_t signals = 0;
};
using ReceiveChain = LinkedRequests<ibv_recv_wr>;

}  // namespace weft::verbs
