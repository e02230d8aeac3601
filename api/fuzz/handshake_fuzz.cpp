// libFuzzer target over the bootstrap's frames: what a stranger sends before and beside the data (SEC-1,
// CON-7). The input is one side's stream: a preamble, then frames. Nothing crashes, and what is accepted is
// exactly what an honest peer would have written: coding it again gives the same bytes. Run by
// scripts/check-fuzz.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bootstrap/wire.hpp"

namespace weft::core::wire {
namespace {

std::uint64_t frames = 0;

struct SayCount {
  ~SayCount() {
    std::fprintf(stderr, "%llu handshake frames looked at\n", static_cast<unsigned long long>(frames));
  }
} const say_count;

template <class FrameBody>
void check(std::span<const std::byte> frame) {
  const auto body = decode<FrameBody>(frame.subspan(header_size));
  if (!body) return;
  // What is accepted can be said again, and is then the same. (Texts are cleaned when they come in.)
  const Bytes again = encode(*body);
  const auto second = decode<FrameBody>(std::span(again).subspan(header_size));
  if (!second || encode(*second) != again || again.size() > frame.size()) {
    std::fprintf(stderr, "handshake_fuzz: a frame was accepted that cannot be written again\n");
    std::abort();
  }
}

void look_at(FrameType type, std::span<const std::byte> frame) {
  switch (type) {
    case FrameType::hello:
      return check<Hello>(frame);
    case FrameType::welcome:
      return check<Welcome>(frame);
    case FrameType::refuse:
      return check<Refuse>(frame);
    case FrameType::linked:
      return check<Linked>(frame);
    case FrameType::accept:
      return check<Accept>(frame);
    case FrameType::reject:
      return check<Reject>(frame);
    case FrameType::link:
      return check<LinkHello>(frame);
    case FrameType::end:
      return check<End>(frame);
    case FrameType::ring:
      return check<Ring>(frame);
    case FrameType::ready:
    case FrameType::go:
    case FrameType::link_ok:
    case FrameType::ping:
    case FrameType::pong:
      return;
  }
  std::fprintf(stderr, "handshake_fuzz: a frame of no known type was accepted\n");
  std::abort();
}

void run(std::span<const std::byte> stream) {
  if (stream.size() < preamble_size) return;
  const Preamble preamble = decode_preamble(stream.first<preamble_size>());
  constexpr std::size_t meaning = 10;  // two bytes more are reserved and not looked at
  const Bytes again = encode(preamble);
  if (!std::equal(again.begin(), again.begin() + meaning, stream.begin())) std::abort();
  stream = stream.subspan(preamble_size);
  while (stream.size() >= header_size) {
    ++frames;
    const auto header = decode_header(stream.first<header_size>());
    if (!header) return;
    if (header->length > max_payload) std::abort();
    if (stream.size() < header_size + header->length) return;
    look_at(header->type, stream.first(header_size + header->length));
    stream = stream.subspan(header_size + header->length);
  }
}

}  // namespace
}  // namespace weft::core::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::core::wire::run({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
