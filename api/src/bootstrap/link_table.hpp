// The links of a context: one for every context it dialed, one for every context that dialed it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/dial.hpp"
#include "bootstrap/link.hpp"

namespace weft::core {

class ContextCore;

// All functions with the service's mutex held.
class LinkTable {
 public:
  explicit LinkTable(ContextCore& context) noexcept : context_(context) {}

  [[nodiscard]] ContextCore& context() noexcept { return context_; }

  // ---- the dialing side
  struct Answer {
    std::shared_ptr<Link> link;  // up, or none:
    Status status = Status::ok;
    std::string text;
  };
  // The link to the context `peer`, opened with `token` at the address `to` unless there is one already. The
  // answer comes later or from inside this call; an asker that is no longer alive gets none.
  struct Asker {
    std::weak_ptr<void> alive;
    wire::Id token{};
    SocketAddress to;
    std::function<void(Answer)> answer;
  };
  void acquire(const wire::Id& peer, Asker asker);

  // ---- the accepting side
  // A fresh token with which the context `peer` may open one link.
  [[nodiscard]] wire::Id issue(const wire::Id& peer);
  void revoke(const wire::Id& token) noexcept { issued_.erase(token); }
  // Takes over a connection whose first frame was `hello`; false when its token is not good.
  [[nodiscard]] bool adopt(FrameStream& stream, const wire::LinkHello& hello);
  // The link that was opened with the token, by that context.
  [[nodiscard]] std::shared_ptr<Link> find_accepted(const wire::Id& token, const wire::Id& peer);

  // Closes all, in order.
  void close_all() noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return dialed_.size() + accepted_.size(); }

  // ---- for Link
  void forget(Link& link) noexcept;
  void on_up(Link& link);
  void on_dial_failed(Link& link, Status status, const std::string& text);

 private:
  struct Dialed {
    std::shared_ptr<Dial> dial;
    std::shared_ptr<Link> link;
    std::vector<Asker> askers;  // the first one's token opens the link
    Timers::Id deadline;
  };

  void start_dial(const wire::Id& peer);
  void on_connected(const wire::Id& peer, Dial::Answer answer);
  void fail(const wire::Id& peer, Status status, const std::string& text);

  ContextCore& context_;
  std::map<wire::Id, Dialed> dialed_;
  std::map<wire::Id, std::shared_ptr<Link>> accepted_;  // by token
  std::map<wire::Id, wire::Id> issued_;                 // token -> the context it was given to
};

}  // namespace weft::core
