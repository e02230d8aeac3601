// Written bytes that the fault plan keeps out of the target's memory for a while, as an adapter may: that a
// write has completed says that it arrived, not that a processor sees it.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fakeverbs {

class DeferredWrites {
 public:
  struct Write {
    std::uint64_t address;
    std::uint32_t key;
    std::vector<std::byte> bytes;
  };
  void add(std::uint64_t address, std::uint32_t key, const std::vector<iovec>& from) {
    Write write{address, key, {}};
    for (const auto& piece : from) {
      const auto* const begin = static_cast<const std::byte*>(piece.iov_base);
      write.bytes.insert(write.bytes.end(), begin, begin + piece.iov_len);
    }
    writes_.push_back(std::move(write));
  }
  [[nodiscard]] bool empty() const { return writes_.empty(); }
  [[nodiscard]] std::vector<Write> take() { return std::exchange(writes_, {}); }

 private:
  std::vector<Write> writes_;
};

}  // namespace fakeverbs
