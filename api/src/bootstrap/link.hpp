// The control connection between two contexts. It carries the orderly ends of their endpoints with the cause,
// no payload, and it is the witness of the peer's life: the kernel of a stopped or busy process answers for
// it, and it ends at once when the process dies (ERR-3).
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <set>
#include <string>

#include "bootstrap/frame_stream.hpp"
#include "bootstrap/service.hpp"

namespace weft::core {

class LinkTable;

// All functions with the service's mutex held.
class Link final : public Service::Handler, public std::enable_shared_from_this<Link> {
 public:
  // Who needs the link; told once when it is lost.
  class User {
   public:
    virtual ~User() = default;
    virtual void on_link_lost(const std::string& why) = 0;
  };

  Link(LinkTable& table, FrameStream stream, const wire::Id& peer, const wire::Id& token, bool dialed);
  ~Link() override { close(); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Takes part in the service's rounds, and says its first frame: link, or link_ok.
  void start();
  // Ends it in order, telling nobody.
  void close() noexcept;

  [[nodiscard]] bool is_up() const noexcept { return up_; }
  [[nodiscard]] const wire::Id& peer() const noexcept { return peer_; }
  [[nodiscard]] const wire::Id& token() const noexcept { return token_; }

  void add(User& user);
  void remove(User& user) noexcept;

  void send_end(const wire::End& frame);
  // At most one for an endpoint waits to be sent.
  void ring(std::uint32_t endpoint);

  void on_ready(std::uint32_t events) override;
  void on_fault(std::string_view what) noexcept override;

 private:
  void on_frame(wire::FrameType type, const wire::Bytes& payload);
  void lose(const std::string& why);
  void send_or_hold(wire::Bytes bytes);
  void send(const wire::Bytes& bytes);
  void ask_for_answer();
  void on_answer();
  void probe();
  void update_interest();
  void rest_if_unused();

  LinkTable& table_;
  FrameStream stream_;
  const wire::Id peer_;
  const wire::Id token_;
  const bool dialed_;
  bool up_ = false;
  bool closed_ = false;
  Service::Watch watch_ = 0;
  Timers::Id probe_timer_;
  Timers::Id rest_timer_;
  std::set<User*> users_;

  // The peer's process may be stopped for long. What it has not answered for stays under a window, so that
  // its kernel always takes what is sent and the connection is never taken for dead.
  bool awaits_answer_ = false;
  bool owes_answer_ = false;
  std::size_t unanswered_ = 0;         // bytes sent
  std::size_t unanswered_at_ask_ = 0;  // of these before the ping
  std::deque<wire::Bytes> held_;
  std::set<std::uint32_t> held_rings_;
};

}  // namespace weft::core
