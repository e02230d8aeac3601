// How libFuzzer changes an input of frames_fuzz: mostly by whole frames that could be right, so that long
// runs of them get past the first checks, beside the usual changes of single bytes.
#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

#include "frames.hpp"
#include "wire.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace weft::engine::wire {
namespace {

using Bytes = std::vector<std::byte>;

class Mutator {
 public:
  Mutator(unsigned seed, bool with_offers) : with_offers_(with_offers), random_(seed) {}

  void change(std::vector<Bytes>& frames) {
    for (std::uint64_t times = below(6) + 1; times != 0; --times) change_once(frames);
  }
  [[nodiscard]] std::uint64_t below(std::uint64_t end) {
    return end == 0 ? 0 : std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random_);
  }

 private:
  [[nodiscard]] bool once_in(std::uint64_t times) { return below(times) == 0; }

  void change_once(std::vector<Bytes>& frames) {
    const auto at = frames.begin() + static_cast<std::ptrdiff_t>(below(frames.size() + 1));
    const std::uint64_t what = below(10);
    if (what < 7 || at == frames.end()) {
      std::vector<Bytes> more;
      for (std::uint64_t count = below(40) + 1; count != 0; --count) add(more);
      frames.insert(at, more.begin(), more.end());
    } else if (what == 7) {
      frames.erase(
          at, at + static_cast<std::ptrdiff_t>(below(static_cast<std::uint64_t>(frames.end() - at)) + 1));
    } else if (what == 8) {
      const Bytes copy = *at;
      frames.insert(at, below(4) + 1, copy);
    } else if (!at->empty()) {
      (*at)[below(std::min<std::size_t>(at->size(), max_header))] = static_cast<std::byte>(below(256));
    }
  }

  [[nodiscard]] std::uint32_t slot() { return wild_ ? static_cast<std::uint32_t>(below(5)) : 0; }
  [[nodiscard]] std::uint64_t offset() { return wild_ ? random_() : below(6000) & ~std::uint64_t{7}; }
  [[nodiscard]] std::uint32_t length() {
    return static_cast<std::uint32_t>(once_in(16) ? below(1500) : below(64));
  }

  template <class Extension>
  [[nodiscard]] static Bytes frame(Type type, std::uint8_t flags, std::uint32_t length, std::uint64_t word,
                                   const Extension& extension) {
    Bytes bytes(sizeof(Header) + sizeof extension + length, std::byte{0x5e});
    store(store(bytes.data(), Header{static_cast<std::uint8_t>(type), flags, 0, length, word}), extension);
    return bytes;
  }
  [[nodiscard]] static Bytes frame(Type type, std::uint8_t flags, std::uint32_t length, std::uint64_t word) {
    Bytes bytes(sizeof(Header) + length, std::byte{0x5e});
    store(bytes.data(), Header{static_cast<std::uint8_t>(type), flags, 0, length, word});
    return bytes;
  }

  // An operation of the peer that is right, or one of any kind with any values.
  void add(std::vector<Bytes>& frames) {
    wild_ = once_in(200);
    if (wild_) {
      frames.push_back(any_frame(static_cast<Type>(below(18))));
      return;
    }
    if (with_offers_ && once_in(3)) {
      add_offered(frames);
      return;
    }
    constexpr std::array usual = {Type::send,       Type::write,      Type::write,       Type::read,
                                  Type::atomic,     Type::flush,      Type::whole_send,  Type::whole_send,
                                  Type::whole_send, Type::whole_send, Type::whole_write, Type::whole_write};
    const Type type = usual[below(usual.size())];
    frames.push_back(any_frame(type));
    add_pieces(frames);
  }

  // Without its payload, which an offer stands for.
  void add_offered(std::vector<Bytes>& frames) {
    const std::uint32_t total = static_cast<std::uint32_t>(below(2000)) + 1;
    const auto asks = once_in(4) ? acknowledge : std::uint8_t{0};
    switch (below(4)) {
      case 0:
        frames.push_back(frame(Type::read_data, 0, 0, 0));
        frames.push_back(frame(Type::offer, 0, 8, 2048));
        return;
      case 1:
        frames.push_back(frame(Type::send, asks | charged, 0, total, SendExtension{7, 0}));
        break;
      default:
        frames.push_back(frame(Type::write, asks, 0, offset(), AccessExtension{slot(), 9, total}));
    }
    frames.push_back(frame(Type::offer, 0, static_cast<std::uint32_t>(below(max_token)) + 1, total));
  }

  // What is too long for one frame goes on in further ones.
  static void add_pieces(std::vector<Bytes>& frames) {
    auto header = load<Header>(frames.back().data());
    std::uint32_t left = header.length;
    if (left <= fuzzed_frame_payload) return;
    header.length = fuzzed_frame_payload;
    store(frames.back().data(), header);
    frames.back().resize(header_size(header.type) + fuzzed_frame_payload);
    for (left -= fuzzed_frame_payload; left != 0;) {
      const std::uint32_t part = std::min(left, fuzzed_frame_payload);
      frames.push_back(frame(Type::more, 0, part, 0));
      left -= part;
    }
  }

  [[nodiscard]] Bytes any_frame(Type type) {
    const std::uint32_t payload = length();
    const auto asks = once_in(4) ? acknowledge : std::uint8_t{0};
    const auto tells = once_in(4) ? immediate : std::uint8_t{0};
    switch (type) {
      case Type::send:
        return frame(type, static_cast<std::uint8_t>(asks | tells | (wild_ ? 0 : charged)), payload,
                     wild_ ? random_() : payload, SendExtension{7, 0});
      case Type::write:
        return frame(type, static_cast<std::uint8_t>(asks | (tells != 0 ? tells | charged : 0)), payload,
                     offset(), AccessExtension{slot(), 9, wild_ ? random_() : payload});
      case Type::whole_send:
        return frame(type, static_cast<std::uint8_t>(asks | tells | (wild_ ? 0 : charged)),
                     std::min(payload, fuzzed_frame_payload), wild_ ? random_() << below(40) : tells);
      case Type::whole_write: {
        Bytes bytes = frame(type, asks, std::min(payload, fuzzed_frame_payload), offset());
        auto header = load<Header>(bytes.data());
        header.slot = static_cast<std::uint16_t>(slot());
        store(bytes.data(), header);
        return bytes;
      }
      case Type::read:
        return frame(type, asks, 0, offset(), AccessExtension{slot(), 0, std::uint64_t{payload} + 1});
      case Type::atomic:
        return frame(type, asks, 0, offset(),
                     AtomicExtension{slot(), static_cast<std::uint32_t>(below(2)), random_(), 1});
      case Type::update:
        return frame(type, 0, 0, 0, UpdateExtension{below(40), static_cast<std::uint32_t>(below(6)), 0});
      case Type::bind:
        return frame(type, 0, 0, below(4), BindExtension{below(4), {random_(), random_()}});
      case Type::more:
      case Type::read_data:
        return frame(type, 0, once_in(2) ? 2048 : payload, 0);
      default:
        return frame(type, 0, 0, below(4));
    }
  }

  const bool with_offers_;
  bool wild_ = false;
  std::minstd_rand random_;
};

// The frames of an input, and what is left behind the last whole one.
std::vector<Bytes> split(const std::byte* bytes, std::size_t size) {
  std::vector<Bytes> frames;
  while (size != 0) {
    std::size_t whole = size;
    const std::size_t header = header_size(static_cast<std::uint8_t>(*bytes));
    if (header != no_such_type && header <= size) whole = std::min(size, header + load<Header>(bytes).length);
    frames.emplace_back(bytes, bytes + whole);
    bytes += whole;
    size -= whole;
  }
  return frames;
}

}  // namespace
}  // namespace weft::engine::wire

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace weft::engine::wire;
  Mutator mutator(seed, size != 0 && (data[0] & fuzzed_with_offers) != 0);
  if (size == 0 || mutator.below(8) == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::vector<Bytes> frames = split(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  mutator.change(frames);
  if (mutator.below(8) == 0) data[0] = static_cast<std::uint8_t>(mutator.below(256));
  std::size_t at = 1;
  for (const Bytes& frame : frames) {
    const std::size_t part = std::min(frame.size(), max_size - at);
    std::copy_n(reinterpret_cast<const std::uint8_t*>(frame.data()), part, data + at);
    at += part;
  }
  return at;
}
