// A listening socket, and the arrivals that wait for the program.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "address.hpp"
#include "bootstrap/frame_stream.hpp"
#include "bootstrap/link.hpp"
#include "bootstrap/service.hpp"
#include "weft/listener.hpp"

namespace weft::core {

class Arrival;
class ContextCore;
class QueueCore;

// All functions but the maker with the service's mutex held.
class ListenerCore final : public Service::Handler, public std::enable_shared_from_this<ListenerCore> {
 public:
  // Binds and listens; throws Error. Without the mutex; looks the host's name up, which may take a while.
  [[nodiscard]] static std::shared_ptr<ListenerCore> make(ContextCore& context, std::string_view address,
                                                          const ListenOptions& options);
  ListenerCore(ContextCore& context, std::shared_ptr<QueueCore> queue, std::uint64_t user_value,
               std::uint32_t backlog) noexcept;
  ~ListenerCore() override;
  ListenerCore(const ListenerCore&) = delete;
  ListenerCore& operator=(const ListenerCore&) = delete;

  void start();
  void close() noexcept;
  [[nodiscard]] bool is_closed() const noexcept { return closed_; }
  [[nodiscard]] const SocketAddress& address() const noexcept { return address_; }
  [[nodiscard]] std::uint32_t backlog() const noexcept { return backlog_; }
  [[nodiscard]] bool is_full() const noexcept { return waiting_.size() >= backlog_; }

  // A peer is introduced: it is shown to the program.
  void arrive(FrameStream stream, wire::Hello hello, std::uint16_t protocol, std::shared_ptr<Link> link);
  // The oldest one, or null.
  [[nodiscard]] std::shared_ptr<Arrival> next() noexcept;
  // It is gone before the program took it.
  void withdraw(Arrival& arrival) noexcept;

  void on_ready(std::uint32_t events) override;
  void on_fault(std::string_view what) noexcept override;

 private:
  void bind(std::string_view text);
  [[nodiscard]] bool try_bind(const SocketAddress& address, std::string& failures);
  void turn_away(Descriptor socket, std::string_view why) noexcept;
  void out_of_descriptors(int error) noexcept;
  void pause() noexcept;

  ContextCore& context_;
  const std::shared_ptr<QueueCore> queue_;
  const std::uint64_t user_value_;
  const std::uint32_t backlog_;
  Descriptor socket_;
  Descriptor spare_;  // to have one for turning newcomers away when there are no more
  SocketAddress address_;
  Service::Watch watch_ = 0;
  Timers::Id pause_timer_;
  bool closed_ = false;
  bool warned_ = false;
  std::deque<std::shared_ptr<Arrival>> waiting_;
};

}  // namespace weft::core
