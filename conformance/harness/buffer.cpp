#include "harness/buffer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "harness/check.hpp"

namespace conformance {
namespace {

constexpr std::byte slack_byte{0xA5};

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

std::uint64_t pattern_word(std::uint64_t seed, std::uint64_t word) noexcept { return mix(mix(seed) + word); }

std::string difference_at(std::size_t at, std::byte found, std::byte expected, std::size_t size) {
  return "byte " + std::to_string(at) + " of " + std::to_string(size) + " is " +
         std::to_string(std::to_integer<int>(found)) + " instead of " +
         std::to_string(std::to_integer<int>(expected));
}

std::string difference_from(std::span<const std::byte> bytes, std::byte expected) {
  const auto wrong = std::find_if(bytes.begin(), bytes.end(), [&](std::byte b) { return b != expected; });
  if (wrong == bytes.end()) return {};
  return difference_at(static_cast<std::size_t>(wrong - bytes.begin()), *wrong, expected, bytes.size());
}

}  // namespace

std::byte pattern_byte(std::uint64_t seed, std::uint64_t index) noexcept {
  return static_cast<std::byte>(pattern_word(seed, index / 8) >> (8 * (index % 8)));
}

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t first_index) noexcept {
  std::size_t i = 0;
  for (; i < bytes.size() && (first_index + i) % 8 != 0; ++i) bytes[i] = pattern_byte(seed, first_index + i);
  for (; i + 8 <= bytes.size(); i += 8) {
    const std::uint64_t word = pattern_word(seed, (first_index + i) / 8);
    std::memcpy(bytes.data() + i, &word, 8);
  }
  for (; i < bytes.size(); ++i) bytes[i] = pattern_byte(seed, first_index + i);
}

std::string pattern_difference(std::span<const std::byte> bytes, std::uint64_t seed,
                               std::uint64_t first_index) {
  for (std::size_t i = 0; i < bytes.size();) {
    if ((first_index + i) % 8 == 0 && i + 8 <= bytes.size()) {
      const std::uint64_t word = pattern_word(seed, (first_index + i) / 8);
      if (std::memcmp(bytes.data() + i, &word, 8) == 0) {
        i += 8;
        continue;
      }
    }
    const std::byte expected = pattern_byte(seed, first_index + i);
    if (bytes[i] != expected) return difference_at(i, bytes[i], expected, bytes.size());
    ++i;
  }
  return {};
}

GuardedBuffer::GuardedBuffer(std::size_t size) : size_(size) {
  const std::size_t page = page_size();
  const std::size_t usable = std::max<std::size_t>(1, (size + page - 1) / page) * page;
  mapping_size_ = usable + 2 * page;
  void* mapping = mmap(nullptr, mapping_size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "guarded buffer: mmap");
  mapping_ = static_cast<std::byte*>(mapping);
  slack_ = mapping_ + page;
  if (mprotect(slack_, usable, PROT_READ | PROT_WRITE) != 0) {
    throw std::system_error(errno, std::generic_category(), "guarded buffer: mprotect");
  }
  data_ = slack_ + (usable - size);
  std::fill(slack_, data_, slack_byte);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  if (this != &other) {
    release();
    mapping_ = std::exchange(other.mapping_, nullptr);
    mapping_size_ = other.mapping_size_;
    slack_ = other.slack_;
    data_ = other.data_;
    size_ = other.size_;
  }
  return *this;
}

GuardedBuffer::~GuardedBuffer() { release(); }

void GuardedBuffer::release() noexcept {
  if (mapping_ == nullptr) return;
  CHECK_EQ(underrun(), "") << "written before the first byte of a buffer of " << size_ << " bytes";
  munmap(mapping_, mapping_size_);
  mapping_ = nullptr;
}

void GuardedBuffer::poison() const noexcept { poison(0, size_); }

void GuardedBuffer::poison(std::size_t offset, std::size_t length) const noexcept {
  std::fill_n(data_ + offset, length, poison_byte);
}

std::string GuardedBuffer::touched(std::size_t offset, std::size_t length) const {
  return difference_from(bytes(offset, length), poison_byte);
}

std::string GuardedBuffer::underrun() const { return difference_from({slack_, data_}, slack_byte); }

void GuardedBuffer::protect(bool writable) const {
  const std::size_t usable = mapping_size_ - 2 * page_size();
  if (mprotect(slack_, usable, writable ? PROT_READ | PROT_WRITE : PROT_READ) != 0) {
    throw std::system_error(errno, std::generic_category(), "guarded buffer: mprotect");
  }
}

}  // namespace conformance
