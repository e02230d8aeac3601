#include "channel.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace perf {
namespace {

struct Header {
  Message kind;
  std::uint32_t length;
};

struct SliceHeader {
  std::uint64_t operations;
  double seconds;
};

// Milliseconds for poll(2): -1 for no deadline, never negative otherwise.
int remaining(std::chrono::steady_clock::time_point deadline) {
  if (deadline == std::chrono::steady_clock::time_point::max()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 3'600'000));
}

}  // namespace

Channel::~Channel() { ::close(descriptor_); }

void Channel::send(Message kind, const std::string& payload) {
  const Header header{kind, static_cast<std::uint32_t>(payload.size())};
  std::string frame(sizeof header + payload.size(), '\0');
  std::memcpy(frame.data(), &header, sizeof header);
  std::copy(payload.begin(), payload.end(), frame.begin() + sizeof header);
  for (std::size_t sent = 0; sent < frame.size();) {
    const ssize_t result = ::send(descriptor_, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (result < 0 && errno == EINTR) continue;
    if (result < 0) throw std::system_error(errno, std::generic_category(), "control channel: send");
    sent += static_cast<std::size_t>(result);
  }
}

void Channel::receive_bytes(void* data, std::size_t length, std::chrono::steady_clock::time_point deadline) {
  auto* at = static_cast<char*>(data);
  while (length > 0) {
    pollfd readable{descriptor_, POLLIN, 0};
    const int count = ::poll(&readable, 1, remaining(deadline));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw std::system_error(errno, std::generic_category(), "control channel: poll");
    if (count == 0) throw std::runtime_error("no answer in time");
    const ssize_t got = ::recv(descriptor_, at, length, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw std::runtime_error("the process is gone without a word");
    at += got;
    length -= static_cast<std::size_t>(got);
  }
}

Channel::Received Channel::receive(std::chrono::steady_clock::time_point deadline) {
  Header header{};
  receive_bytes(&header, sizeof header, deadline);
  Received received{header.kind, std::string(header.length, '\0')};
  receive_bytes(received.payload.data(), received.payload.size(), deadline);
  return received;
}

std::string pack(std::uint64_t number) { return {reinterpret_cast<const char*>(&number), sizeof number}; }

std::uint64_t unpack_number(const std::string& payload) {
  std::uint64_t number = 0;
  if (payload.size() != sizeof number) throw std::runtime_error("control channel: a number was expected");
  std::memcpy(&number, payload.data(), sizeof number);
  return number;
}

std::string pack(const Slice& slice) {
  const SliceHeader header{slice.operations, slice.seconds};
  std::string payload(sizeof header + slice.round_trips.size() * sizeof(std::uint32_t), '\0');
  std::memcpy(payload.data(), &header, sizeof header);
  std::copy(slice.round_trips.begin(), slice.round_trips.end(),
            reinterpret_cast<std::uint32_t*>(payload.data() + sizeof header));
  return payload;
}

Slice unpack_slice(const std::string& payload) {
  SliceHeader header{};
  if (payload.size() < sizeof header) throw std::runtime_error("control channel: a slice was expected");
  std::memcpy(&header, payload.data(), sizeof header);
  Slice slice{header.operations, header.seconds, {}};
  slice.round_trips.resize((payload.size() - sizeof header) / sizeof(std::uint32_t));
  if (slice.round_trips.empty()) return slice;
  std::memcpy(slice.round_trips.data(), payload.data() + sizeof header,
              slice.round_trips.size() * sizeof(std::uint32_t));
  return slice;
}

}  // namespace perf
