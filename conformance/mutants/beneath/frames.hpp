// Frames of the handshake that are changed on their way out.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "fault.hpp"

namespace fault::frames {

using Frame = std::vector<char>;

inline Frame with_length(Frame frame) {
  const auto length = static_cast<std::uint32_t>(frame.size() - header_size);
  std::memcpy(frame.data(), &length, sizeof length);
  return frame;
}

// An accept ends with the provider's bytes and the private data, each behind its length in 16 bits.
inline std::optional<std::size_t> private_data_of_accept(const Frame& frame) {
  constexpr std::size_t blob = header_size + 4 + 44;  // behind the endpoint's number and its limits
  if (frame.size() < blob + 2) return std::nullopt;
  const std::size_t data = blob + 2 + at<std::uint16_t>(frame.data(), blob);
  if (frame.size() < data + 2 || frame.size() != data + 2 + at<std::uint16_t>(frame.data(), data))
    return std::nullopt;
  return data;
}

// CON-4: "exact bytes, exact length".
inline std::optional<Frame> with_other_private_data(Frame frame, bool pads) {
  const auto data = private_data_of_accept(frame);
  if (!data) return std::nullopt;
  const auto first = frame.begin() + static_cast<std::ptrdiff_t>(*data + 2);
  if (pads) {
    if ((frame.end() - first) % 2 == 0) return std::nullopt;
    frame.push_back(0);
  } else {
    const auto zero = std::find(first, frame.end(), '\0');
    if (zero == frame.end()) return std::nullopt;
    frame.erase(zero, frame.end());
  }
  const auto length = static_cast<std::uint16_t>(frame.size() - *data - 2);
  std::memcpy(frame.data() + *data, &length, sizeof length);
  return with_length(std::move(frame));
}

// What goes out in the frame's place; nothing when it is right as it is.
inline std::optional<Frame> changed(const void* bytes, std::size_t size) {
  constexpr std::uint16_t hello = 1;
  constexpr std::uint16_t refuse = 3;
  constexpr std::uint16_t accept = 5;
  const char* first = static_cast<const char*>(bytes);
  if (is_frame(bytes, size, accept)) {
    if (is("private-data-ends-at-a-zero")) return with_other_private_data({first, first + size}, false);
    if (is("pads-odd-private-data")) return with_other_private_data({first, first + size}, true);
  }
  constexpr std::size_t longest = 4096;
  if (is("the-longest-private-data-loses-a-byte") && is_frame(bytes, size, hello) && size > longest + 2 &&
      at<std::uint16_t>(bytes, size - longest - 2) == longest) {
    Frame frame(first, first + size - 1);
    const auto length = static_cast<std::uint16_t>(longest - 1);
    std::memcpy(frame.data() + size - longest - 2, &length, sizeof length);
    return with_length(std::move(frame));
  }
  // CON-8: "an error naming both and those that both have". The status, then the text behind its length.
  constexpr std::size_t text = header_size + 1;
  if (is("refuses-without-names") && is_frame(bytes, size, refuse) && size > text + 2) {
    constexpr std::string_view plain = "it does not fit";
    Frame frame(first, first + text);
    const auto length = static_cast<std::uint16_t>(plain.size());
    frame.resize(text + 2);
    std::memcpy(frame.data() + text, &length, sizeof length);
    frame.insert(frame.end(), plain.begin(), plain.end());
    return with_length(std::move(frame));
  }
  return std::nullopt;
}

}  // namespace fault::frames
