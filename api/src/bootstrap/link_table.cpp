#include "bootstrap/link_table.hpp"

#include <utility>

#include "host.hpp"
#include "objects/context_core.hpp"

namespace weft::core {

namespace {

constexpr std::chrono::seconds link_timeout{10};

}  // namespace

void LinkTable::acquire(const wire::Id& peer, Asker asker) {
  Dialed& entry = dialed_[peer];
  if (entry.link != nullptr && entry.link->is_up()) {
    asker.answer({entry.link, Status::ok, {}});
    return;
  }
  entry.askers.push_back(std::move(asker));
  if (entry.askers.size() == 1) start_dial(peer);
}

void LinkTable::start_dial(const wire::Id& peer) {
  Dialed& entry = dialed_[peer];
  const Asker& first = entry.askers.front();
  entry.dial =
      std::make_shared<Dial>(context_.service(), std::vector{first.to}, context_.local_address(),
                             [this, peer](Dial::Answer answer) { on_connected(peer, std::move(answer)); });
  context_.service().cancel_timer(entry.deadline);
  entry.deadline = context_.service().add_timer(link_timeout, [this, peer] {
    fail(peer, Status::timed_out, "the peer did not answer on the second connection within 10 s");
  });
  entry.dial->start();
}

void LinkTable::on_connected(const wire::Id& peer, Dial::Answer answer) {
  const auto found = dialed_.find(peer);
  if (found == dialed_.end() || found->second.askers.empty()) return;
  if (!answer.socket) return fail(peer, answer.status, answer.text);
  Dialed& entry = found->second;
  entry.link = std::make_shared<Link>(*this, FrameStream(std::move(answer.socket)), peer,
                                      entry.askers.front().token, true);
  try {
    entry.link->start();
  } catch (const Error& error) {
    fail(peer, error.code(), error.what());
  }
}

void LinkTable::on_up(Link& link) {
  const auto found = dialed_.find(link.peer());
  if (found == dialed_.end() || found->second.link.get() != &link) return;
  context_.service().cancel_timer(found->second.deadline);
  found->second.dial = nullptr;
  const auto shared = found->second.link;
  for (const Asker& asker : std::exchange(found->second.askers, {})) {
    if (!asker.alive.expired()) asker.answer({shared, Status::ok, {}});
  }
}

void LinkTable::on_dial_failed(Link& link, Status status, const std::string& text) {
  fail(link.peer(), status, text);
}

void LinkTable::fail(const wire::Id& peer, Status status, const std::string& text) {
  const auto found = dialed_.find(peer);
  if (found == dialed_.end()) return;
  Dialed failed = std::move(found->second);
  dialed_.erase(found);
  context_.service().cancel_timer(failed.deadline);
  if (failed.link != nullptr) failed.link->close();
  // The one whose token was used has failed; the others may do better, with their own.
  bool first = true;
  for (Asker& asker : failed.askers) {
    const bool was_first = std::exchange(first, false);
    if (asker.alive.expired()) continue;
    if (was_first) {
      asker.answer({nullptr, status, text});
    } else {
      acquire(peer, std::move(asker));
    }
  }
}

wire::Id LinkTable::issue(const wire::Id& peer) {
  wire::Id token{};
  ProviderHost::fill_random(token);
  issued_.emplace(token, peer);
  return token;
}

bool LinkTable::adopt(FrameStream& stream, const wire::LinkHello& hello) {
  const auto found = issued_.find(hello.token);
  if (found == issued_.end() || found->second != hello.context) return false;
  issued_.erase(found);
  const auto link = std::make_shared<Link>(*this, std::move(stream), hello.context, hello.token, false);
  accepted_.emplace(hello.token, link);
  try {
    link->start();
  } catch (...) {
    accepted_.erase(hello.token);
    throw;
  }
  return true;
}

std::shared_ptr<Link> LinkTable::find_accepted(const wire::Id& token, const wire::Id& peer) {
  const auto found = accepted_.find(token);
  if (found == accepted_.end() || found->second->peer() != peer || !found->second->is_up()) return nullptr;
  return found->second;
}

void LinkTable::forget(Link& link) noexcept {
  // Who calls holds a reference, so that the link outlives this.
  const auto accepted = accepted_.find(link.token());
  if (accepted != accepted_.end() && accepted->second.get() == &link) accepted_.erase(accepted);
  const auto dialed = dialed_.find(link.peer());
  if (dialed != dialed_.end() && dialed->second.link.get() == &link && dialed->second.askers.empty()) {
    dialed_.erase(dialed);
  }
}

void LinkTable::close_all() noexcept {
  for (auto& [peer, entry] : dialed_) {
    context_.service().cancel_timer(entry.deadline);
    if (entry.dial != nullptr) entry.dial->cancel();
    if (entry.link != nullptr) entry.link->close();
  }
  for (auto& [token, link] : accepted_) link->close();
  dialed_.clear();
  accepted_.clear();
  issued_.clear();
}

}  // namespace weft::core
