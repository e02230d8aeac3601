#include "bootstrap/waker.hpp"

#include <sys/eventfd.h>

#include "bootstrap/socket.hpp"

namespace weft::core {

Waker::Waker() : event_(Descriptor::from([] { return ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); })) {
  if (!event_) throw Error(status_of_errno(errno), "cannot make an event descriptor: " + errno_text(errno));
}

void Waker::wake() noexcept {
  if (raised_.exchange(true)) return;
  const std::uint64_t one = 1;
  while (::write(event_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void Waker::clear() noexcept {
  std::uint64_t count = 0;
  while (::read(event_.get(), &count, sizeof count) < 0 && errno == EINTR) {
  }
  raised_.exchange(false);  // after the read: a wake in between is seen by the caller's look
}

}  // namespace weft::core
