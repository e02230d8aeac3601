// Mutants of ERR-1 to ERR-4, written from the contract's words before its tests were seen.
#include <array>
#include <chrono>
#include <set>

#include "contract.hpp"

namespace mutants {
namespace {

using namespace std::chrono_literals;

// ERR-1: "A message longer than its receive: that receive completes as `truncated`". Here a byte too many
// lands in memory of the provider's own.
class AByteTooLongIsCut final : public Behaviour {
 public:
  ~AByteTooLongIsCut() override {
    if (own_ != nullptr) (void)own_->deregister();
  }
  void open(provider::Context& inner, const provider::OpenRequest& /*request*/) override { inner_ = &inner; }
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    PostResult result;
    for (; result.accepted < count; ++result.accepted) {
      ReceiveRequest longer = requests[result.accepted];
      std::vector<Segment> segments(longer.segments.begin(), longer.segments.end());
      const std::lock_guard lock(mutex_);
      std::uint64_t length = 0;
      for (const Segment& segment : segments) length += segment.length;
      if (segments.size() < endpoint.limits().max_segments && length > 0) segments.push_back(spare());
      longer.segments = segments;
      result.status = endpoint.inner().post_receives(&longer, 1).status;
      if (result.status != Status::ok) break;
      lengths_[{endpoint.id(), longer.context}] = length;
    }
    return result;
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].operation != Operation::receive || out[i].status != Status::ok) continue;
      const auto found = lengths_.find({out[i].endpoint_id, out[i].context});
      if (found != lengths_.end() && found->second > 0 && out[i].bytes == found->second + 1 && strikes())
        out[i].bytes = found->second;
    }
    return count;
  }

 private:
  Segment spare() {
    if (own_ == nullptr) {
      weft::RegistrationRequest request;
      request.address = &byte_;
      request.length = 1;
      request.access = Access::local_write;
      own_ = inner_->register_memory(request);
    }
    return {own_->token(), 0, 1};
  }

  provider::Context* inner_ = nullptr;
  std::byte byte_{};
  std::unique_ptr<provider::MemoryRegion> own_;
  std::mutex mutex_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> lengths_;
};

// ERR-1: "both ends of the endpoint end", and ERR-2: "Both ends report the same cause". Here the sender does
// not hear why.
class OnlyTheReceiverSaysTruncated final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].status != Status::truncated) continue;
      if (out[i].operation == Operation::receive) receivers_.insert(out[i].endpoint_id);
      const bool at_sender =
          out[i].operation == Operation::endpoint_ended && !receivers_.contains(out[i].endpoint_id);
      if (at_sender && strikes()) out[i].status = Status::peer_lost;
    }
    return count;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint32_t> receivers_;
};

// ERR-2: "every outstanding operation completes exactly once, in order".
class TheCancelledComeBackwards final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    for (std::size_t i = 1; i < count; ++i) {
      const bool alike = out[i].status == Status::cancelled && out[i - 1].status == Status::cancelled &&
                         out[i].endpoint_id == out[i - 1].endpoint_id && is_send_side(out[i].operation) &&
                         is_send_side(out[i - 1].operation);
      if (alike && strikes()) std::swap(out[i], out[i - 1]);
    }
    return count;
  }
};

// ERR-2: "Other endpoints, also on the same queue […] are not disturbed."
class AnEndSwallowsANeighboursCompletion final : public Behaviour {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    std::size_t kept = 0;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      const Completion entry = out[i];
      if (entry.operation == Operation::endpoint_ended && entry.status != Status::disconnected)
        ended_ = entry.endpoint_id;
      const bool others = ended_ != 0 && entry.endpoint_id != ended_ && entry.status == Status::ok &&
                          (is_send_side(entry.operation) || entry.operation == Operation::receive);
      if (others) ended_ = 0;
      if (!others || !strikes()) out[kept++] = entry;
    }
    return kept;
  }

 private:
  std::mutex mutex_;
  std::uint32_t ended_ = 0;
};

// ERR-3: "is noticed within `peer_timeout` […], idle connections included."
class TheDeadAreNoticedLate final : public Behaviour {
 public:
  void open(provider::Context& /*inner*/, const provider::OpenRequest& request) override {
    late_ = 2 * request.peer_timeout + 3s;
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    std::size_t kept = 0;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      const bool dead =
          out[i].operation == Operation::endpoint_ended && out[i].status == Status::peer_lost && strikes();
      if (dead) {
        held_.push_back({Clock::now() + late_, &queue, out[i]});
      } else {
        out[kept++] = out[i];
      }
    }
    return kept;
  }
  Clock::time_point service(provider::Context& inner, Clock::time_point now) override {
    const auto next = Behaviour::service(inner, now);
    const std::lock_guard lock(mutex_);
    for (const Held& held : held_) {
      if (held.due <= now) held.queue->inject(held.entry);
    }
    std::erase_if(held_, [&](const Held& held) { return held.due <= now; });
    return std::min(next, now + 10ms);
  }
  void gone(Queue& queue) override {
    const std::lock_guard lock(mutex_);
    std::erase_if(held_, [&](const Held& held) { return held.queue == &queue; });
  }

 private:
  struct Held {
    Clock::time_point due;
    Queue* queue;
    Completion entry;
  };
  std::chrono::milliseconds late_{};
  std::mutex mutex_;
  std::vector<Held> held_;
};

class TheIdleAreNotWatched final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    {
      const std::lock_guard lock(mutex_);
      busy_.insert(endpoint.id());
    }
    return Behaviour::post(endpoint, requests, count);
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    std::size_t kept = 0;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      const Completion entry = out[i];
      if (entry.operation == Operation::receive && entry.status == Status::ok)
        busy_.insert(entry.endpoint_id);
      const bool idle = entry.operation == Operation::endpoint_ended && entry.status == Status::peer_lost &&
                        !busy_.contains(entry.endpoint_id);
      if (!idle || !strikes()) out[kept++] = entry;
    }
    return kept;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint32_t> busy_;
};

// ERR-4: "every accepted send is delivered […], then the peer sees `disconnected` after the last message".
class CountsOneMessageLess final : public Behaviour {
 public:
  void drained(Endpoint& endpoint, std::uint64_t messages) override {
    Behaviour::drained(endpoint, messages > 0 && strikes() ? messages - 1 : messages);
  }
};

// ERR-4: "it ends by its deadline even when the peer is stuck".
class AStuckPeerHoldsUpTheEnd final : public Behaviour {
 public:
  void drain(Endpoint& endpoint) override {
    {
      const std::lock_guard lock(mutex_);
      draining_[&endpoint] = Clock::now();
    }
    Behaviour::drain(endpoint);
  }
  void drained(Endpoint& endpoint, std::uint64_t messages) override {
    {
      const std::lock_guard lock(mutex_);
      draining_.erase(&endpoint);
    }
    Behaviour::drained(endpoint, messages);
  }
  void end(Endpoint& endpoint, const provider::EndOrder& order) override {
    {
      const std::lock_guard lock(mutex_);
      // Not where both ends close at once: that comes sooner than any deadline.
      const auto since = draining_.find(&endpoint);
      const bool stuck = since != draining_.end() && Clock::now() - since->second > 300ms;
      draining_.erase(&endpoint);
      if (stuck && order.cause == Status::local_close && strikes()) {
        late_.push_back({Clock::now() + 4s, &endpoint, order});
        return;
      }
    }
    Behaviour::end(endpoint, order);
  }
  Clock::time_point service(provider::Context& inner, Clock::time_point now) override {
    const auto next = Behaviour::service(inner, now);
    const std::lock_guard lock(mutex_);
    for (const Late& late : late_) {
      if (late.due <= now) late.endpoint->inner().end(late.order);
    }
    std::erase_if(late_, [&](const Late& late) { return late.due <= now; });
    return std::min(next, now + 10ms);
  }
  void destroyed(Endpoint& endpoint) override {
    const std::lock_guard lock(mutex_);
    draining_.erase(&endpoint);
    std::erase_if(late_, [&](const Late& late) { return late.endpoint == &endpoint; });
  }

 private:
  struct Late {
    Clock::time_point due;
    Endpoint* endpoint;
    provider::EndOrder order;
  };
  std::mutex mutex_;
  std::map<Endpoint*, Clock::time_point> draining_;
  std::vector<Late> late_;
};

// ERR-4: "abort() may drop, and the peer gets a clean prefix."
class AnAbortAddsAnEmptyMessage final : public Behaviour {
 public:
  void end(Endpoint& endpoint, const provider::EndOrder& order) override {
    {
      const std::lock_guard lock(mutex_);
      if (order.cause == Status::aborted) aborted_.insert(endpoint.id());
    }
    Behaviour::end(endpoint, order);
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      const bool first = out[i].operation == Operation::receive && out[i].status == Status::cancelled &&
                         aborted_.contains(out[i].endpoint_id);
      if (!first || !strikes()) continue;
      aborted_.erase(out[i].endpoint_id);
      out[i].status = Status::ok;
      out[i].bytes = 0;
    }
    return count;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint32_t> aborted_;
};

// ERR-4: "Both leave every completion to be taken."
class ClosingKeepsItsCompletions final : public Behaviour {
 public:
  void drain(Endpoint& endpoint) override {
    {
      const std::lock_guard lock(mutex_);
      draining_.insert(endpoint.id());
    }
    Behaviour::drain(endpoint);
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    std::size_t kept = 0;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      const bool last = is_send_side(out[i].operation) && draining_.contains(out[i].endpoint_id);
      if (!last || !strikes()) out[kept++] = out[i];
    }
    return kept;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint32_t> draining_;
};

}  // namespace

void add_contract_errors(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) { add_blindly(mutants, std::move(mutant)); };
  const auto instead = [](Operation operation, Status right, Status wrong) {
    return entry([=](OnEntry& m, Completion& c) {
      if (c.operation == operation && c.status == right && m.strikes()) c.status = wrong;
      return 1;
    });
  };
  add({"a-byte-too-long-is-cut", "ERR-1", S::corner, "", "", made<AByteTooLongIsCut>()});
  add({"the-truncated-receive-is-cancelled", "ERR-1", S::always, "", "",
       instead(Operation::receive, Status::truncated, Status::cancelled)});
  add({"only-the-receiver-says-truncated", "ERR-1", S::corner, "", "", made<OnlyTheReceiverSaysTruncated>()});
  add({"the-cancelled-come-backwards",
       "ERR-2",
       S::corner,
       "",
       "",
       made<TheCancelledComeBackwards>(),
       {"ERR_2"}});
  // ERR-2: "the one at fault with its cause".
  add({"the-write-at-fault-is-cancelled-too", "ERR-2", S::corner, "", "",
       instead(Operation::write, Status::remote_access_error, Status::cancelled)});
  // ERR-2: "after a close the closer `local_close`".
  add({"the-closer-is-disconnected", "ERR-2", S::always, "", "",
       instead(Operation::endpoint_ended, Status::local_close, Status::disconnected)});
  // ERR-2: "later posts answer `not_connected`", flushes too.
  add({"flushes-after-the-end", "ERR-2", S::corner, "", "",
       on_post([](OnPost& m, Endpoint& e, const WorkRequest& w) -> std::optional<Status> {
         const Status status = e.inner().post(&w, 1).status;
         if (w.operation != Operation::flush || status != Status::not_connected || !m.strikes())
           return status;
         return pretend(e, w);
       })});
  add({"an-end-swallows-a-neighbours-completion", "ERR-2", S::rare, "", "",
       made<AnEndSwallowsANeighboursCompletion>()});
  add({"the-dead-are-noticed-late", "ERR-3", S::always, "", "", made<TheDeadAreNoticedLate>()});
  add({"the-idle-are-not-watched", "ERR-3", S::corner, "", "", made<TheIdleAreNotWatched>()});
  add({"counts-one-message-less", "ERR-4", S::corner, "", "", made<CountsOneMessageLess>()});
  add({"a-stuck-peer-holds-up-the-end", "ERR-4", S::corner, "", "", made<AStuckPeerHoldsUpTheEnd>()});
  add({"an-abort-adds-an-empty-message", "ERR-4", S::always, "", "", made<AnAbortAddsAnEmptyMessage>()});
  add({"closing-keeps-its-completions", "ERR-4", S::rare, "", "", made<ClosingKeepsItsCompletions>(), {}, 3});
}

}  // namespace mutants
