#include "words.hpp"

#include <algorithm>

namespace info {

const char* word(weft::Trust trust) {
  switch (trust) {
    case weft::Trust::nobody:
      return "nobody";
    case weft::Trust::connected_peers:
      return "connected peers";
    case weft::Trust::same_user:
      return "same user";
    case weft::Trust::whoever_reaches_the_port:
      return "whoever reaches the port";
  }
  return "unknown";
}

const char* word(weft::ThreadMode mode) { return mode == weft::ThreadMode::safe ? "safe" : "single"; }

const char* word(weft::ProgressMode mode) {
  return mode == weft::ProgressMode::automatic ? "automatic" : "when_called";
}

const char* word(weft::AtomicScope scope) {
  switch (scope) {
    case weft::AtomicScope::none:
      return "none";
    case weft::AtomicScope::device:
      return "device";
    case weft::AtomicScope::device_and_cpu:
      return "device_and_cpu";
  }
  return "unknown";
}

const char* meaning(weft::AtomicScope scope) {
  switch (scope) {
    case weft::AtomicScope::none:
      return "none";
    case weft::AtomicScope::device:
      return "among all that come through the same device";
    case weft::AtomicScope::device_and_cpu:
      return "among all that come through the same device, and with the CPU's own";
  }
  return "unknown";
}

std::string wrapped(std::string_view text, std::string_view head, std::size_t indent, std::size_t width) {
  std::string result(head);
  result.resize(std::max(head.size(), indent), ' ');
  std::size_t column = result.size();
  bool line_is_empty = true;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view piece = text.substr(at, end - at);
    at = end + 1;
    if (piece.empty()) continue;
    if (!line_is_empty && column + 1 + piece.size() > width) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
      line_is_empty = true;
    }
    if (!line_is_empty) {
      result += ' ';
      ++column;
    }
    result += piece;
    column += piece.size();
    line_is_empty = false;
  }
  return result + '\n';
}

}  // namespace info
