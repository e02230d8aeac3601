#include "bootstrap/frame_stream.hpp"

#include <sys/socket.h>

#include "bootstrap/socket.hpp"

namespace weft::core {

FrameStream::Result FrameStream::fill(std::size_t count) {
  if (!socket_) return Result::closed;
  if (input_.size() != count) input_.resize(count);  // at most max_payload
  while (have_ < count) {
    const ssize_t got = ::recv(socket_.get(), input_.data() + have_, count - have_, MSG_DONTWAIT);
    if (got > 0) {
      have_ += static_cast<std::size_t>(got);
    } else if (got == 0) {
      return Result::closed;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return Result::nothing;
    } else if (errno != EINTR) {
      error_ = errno;
      return Result::broken;
    }
  }
  have_ = 0;
  return Result::done;
}

FrameStream::Result FrameStream::read_preamble(wire::Preamble& preamble) {
  const Result result = fill(wire::preamble_size);
  if (result != Result::done) return result;
  preamble = wire::decode_preamble(std::span<const std::byte, wire::preamble_size>(input_));
  return preamble.magic == wire::magic ? Result::done : Result::malformed;
}

FrameStream::Result FrameStream::read_frame(wire::FrameType& type, wire::Bytes& payload) {
  if (!in_payload_) {
    const Result result = fill(wire::header_size);
    if (result != Result::done) return result;
    const auto header = wire::decode_header(std::span<const std::byte, wire::header_size>(input_));
    if (!header) return Result::malformed;
    header_ = *header;
    in_payload_ = true;
  }
  const Result result = fill(header_.length);
  if (result != Result::done) return result;
  in_payload_ = false;
  type = header_.type;
  payload = std::move(input_);
  input_.clear();
  return Result::done;
}

void FrameStream::send(const wire::Bytes& bytes) {
  if (send_failed_ || !socket_) return;
  output_.insert(output_.end(), bytes.begin(), bytes.end());
  flush();
}

void FrameStream::flush() noexcept {
  std::size_t sent = 0;
  while (sent < output_.size() && !send_failed_) {
    const ssize_t count =
        ::send(socket_.get(), output_.data() + sent, output_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      error_ = errno;
      send_failed_ = true;
    }
  }
  output_.erase(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(sent));
  if (send_failed_) output_.clear();
}

std::string FrameStream::describe(Result result) const {
  switch (result) {
    case Result::closed:
      return "the peer closed the connection";
    case Result::broken:
      return "the connection failed: " + errno_text(error_);
    case Result::malformed:
      return "what it sends is not weft's protocol";
    case Result::done:
    case Result::nothing:
      break;
  }
  return "the connection is fine";
}

void FrameStream::close() noexcept { close_gently(std::move(socket_)); }

}  // namespace weft::core
