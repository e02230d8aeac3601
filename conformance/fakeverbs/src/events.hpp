// Event descriptors: datagram sockets with names, so that another process can put an event into them and the
// program can wait for them with poll, epoll or a blocking read.
#pragma once

#include <cstdint>
#include <string>

namespace fakeverbs {

struct Event {
  std::uint32_t type;    // of asynchronous events
  std::uint32_t handle;  // of the object it concerns
};

// Where the descriptors of one process can be found.
struct EventAddress {
  std::uint32_t pid;
  std::uint32_t channel;
};

// A new descriptor with that address, or -1 and errno.
[[nodiscard]] int open_event_descriptor(const std::string& network, const EventAddress& address);

// Puts events into descriptors. False when there was no room.
class EventSender {
 public:
  explicit EventSender(std::string network);
  EventSender(const EventSender&) = delete;
  EventSender& operator=(const EventSender&) = delete;
  ~EventSender();
  [[nodiscard]] bool send(const EventAddress& address, const Event& event) const;

 private:
  std::string network_;
  int descriptor_;
};

// Blocks unless the descriptor is non-blocking. 0, or -1 and errno.
[[nodiscard]] int receive_event(int descriptor, Event& event);

}  // namespace fakeverbs
