// Mutants of CON, SEC and SEL, and all those beneath the core, written from the contract's words before the
// tests were seen.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <set>

#include "contract.hpp"

namespace mutants {
namespace {

using namespace std::chrono_literals;

// CON-2: "its result is a completion", of which wait_up() leaves nothing to be seen.
class WaitingLeavesTheReport final : public Behaviour {
 public:
  bool withdraw(Endpoint& endpoint) override {
    if (&endpoint.send_queue() == &endpoint.receive_queue() || !strikes())
      return Behaviour::withdraw(endpoint);
    return false;
  }
};

// CON-3: "the next one to the same address works".
class AFailedAttemptSpoilsTheNext final : public Behaviour {
 public:
  void destroyed(Endpoint& endpoint) override {
    if (!endpoint.is_up()) spoilt_ = true;
  }
  void establishing(Endpoint& /*endpoint*/, const provider::PeerParameters& /*peer*/) override {
    if (spoilt_.exchange(false) && strikes())
      throw weft::Error(Status::unreachable, "the attempt before this one failed");
  }

 private:
  std::atomic<bool> spoilt_{false};
};

// CON-3: "descriptors and objects are as before".
class LeavesADescriptorNowAndThen final : public Behaviour {
 public:
  void destroyed(Endpoint& endpoint) override {
    if (!endpoint.is_up() && strikes()) (void)::eventfd(0, EFD_CLOEXEC);
  }
};

// CON-5: "receives can be posted to it (made for connecting, or from a connection request before accepting)".
class EarlyReceivesComeBackwards final : public Behaviour {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    const std::lock_guard lock(mutex_);
    if (endpoint.is_up() || count == 0) return Behaviour::post_receives(endpoint, requests, count);
    auto& early = early_[&endpoint];
    PostResult result;
    // The first goes through at once, so that what is wrong with it is found.
    for (; result.accepted < count; ++result.accepted) {
      const ReceiveRequest& request = requests[result.accepted];
      if (early.size() >= 2 || request.segments.size() != 1)
        return forward(endpoint, early, requests, result, count);
      early.push_back({request.context, {request.segments.begin(), request.segments.end()}});
    }
    return result;
  }
  void go_up(Endpoint& endpoint) override {
    {
      const std::lock_guard lock(mutex_);
      release(endpoint, early_[&endpoint]);
      early_.erase(&endpoint);
    }
    Behaviour::go_up(endpoint);
  }
  void end(Endpoint& endpoint, const provider::EndOrder& order) override {
    {
      const std::lock_guard lock(mutex_);
      release(endpoint, early_[&endpoint]);
    }
    Behaviour::end(endpoint, order);
  }
  void destroyed(Endpoint& endpoint) override {
    const std::lock_guard lock(mutex_);
    early_.erase(&endpoint);
  }

 private:
  struct Early {
    std::uint64_t context;
    std::vector<Segment> segments;
  };
  void release(Endpoint& endpoint, std::deque<Early>& early) {
    if (early.size() > 1 && strikes()) std::swap(early.front(), early.back());
    for (const Early& one : early) {
      const ReceiveRequest request{one.context, one.segments};
      (void)endpoint.inner().post_receives(&request, 1);
    }
    early.clear();
  }
  PostResult forward(Endpoint& endpoint, std::deque<Early>& early, const ReceiveRequest* requests,
                     PostResult taken, std::size_t count) {
    release(endpoint, early);
    const PostResult rest =
        Behaviour::post_receives(endpoint, requests + taken.accepted, count - taken.accepted);
    return {rest.status, taken.accepted + rest.accepted};
  }

  std::mutex mutex_;
  std::map<Endpoint*, std::deque<Early>> early_;
};

// CON-5: "a message sent the moment the peer is connected is never lost."
class LosesTheFirstMessageInAHurry final : public Behaviour {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    {
      const std::lock_guard lock(mutex_);
      if (!endpoint.is_up()) prepared_.insert(endpoint.id());
    }
    return Behaviour::post_receives(endpoint, requests, count);
  }
  void go_up(Endpoint& endpoint) override {
    {
      const std::lock_guard lock(mutex_);
      if (prepared_.contains(endpoint.id())) up_[endpoint.id()] = Clock::now();
    }
    Behaviour::go_up(endpoint);
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::size_t count = Behaviour::poll(queue, out, room);
    std::size_t kept = 0;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
      const Completion entry = out[i];
      const bool message = entry.operation == Operation::receive && entry.status == Status::ok;
      const auto up = message ? up_.find(entry.endpoint_id) : up_.end();
      const bool early = up != up_.end() && Clock::now() - up->second < 10ms;
      if (up != up_.end()) up_.erase(up);
      if (!early || !strikes()) out[kept++] = entry;
    }
    return kept;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint32_t> prepared_;
  std::map<std::uint32_t, Clock::time_point> up_;
};

// CON-8: "All limits seen through an endpoint are the negotiated ones (depths, largest message, outstanding
// reads)."
class KeepsItsOwnDepths final : public Behaviour {
 public:
  void prepared(const provider::EndpointRequest& request) override {
    const std::lock_guard lock(mutex_);
    wished_[request.id] = {request.send_depth, request.receive_depth};
  }
  weft::Limits limits(const Endpoint& endpoint, weft::Limits limits) override {
    const std::lock_guard lock(mutex_);
    const auto found = wished_.find(endpoint.id());
    if (!endpoint.is_up() || endpoint.shares_receives() || found == wished_.end()) return limits;
    if (limits.receive_depth < found->second.second && strikes()) limits.receive_depth = found->second.second;
    return limits;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> wished_;
};

// SEC-1: "Nothing a peer sends […] can […] make memory grow without bound."
class KeepsWhatAttacksBrought final : public Behaviour {
 public:
  void end(Endpoint& endpoint, const provider::EndOrder& order) override {
    const bool attack = order.cause == Status::protocol || order.cause == Status::remote_access_error;
    static std::atomic<int> left{64};  // enough to be seen, not enough to hurt the machine
    if (attack && left.fetch_sub(1) > 0 && strikes()) {
      const std::lock_guard lock(mutex_);
      kept_.emplace_back(std::size_t{8} << 20, std::byte{1});
    }
    Behaviour::end(endpoint, order);
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> kept_;
};

// SEC-3: "What is not encrypted or authenticated is said plainly."
class Describes final : public Behaviour {
 public:
  using Edit = std::function<void(weft::Attributes&)>;
  explicit Describes(Edit edit) : edit_(std::move(edit)) {}
  void attributes(weft::Attributes& attributes) override {
    (void)strikes();
    edit_(attributes);
  }

 private:
  const Edit edit_;
};

Mutant beneath(const char* name, const char* rule, Strength strength) {
  Mutant mutant;
  mutant.name = name;
  mutant.rule = rule;
  mutant.strength = strength;
  mutant.beneath = true;
  return mutant;
}

}  // namespace

void add_contract_connecting(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) { add_blindly(mutants, std::move(mutant)); };
  const auto describes = [](Describes::Edit edit) {
    return [edit] { return std::make_unique<Describes>(edit); };
  };
  // SEL, in the C library and in what a provider says of itself.
  add(beneath("binds-to-no-address", "SEL-2", S::corner));
  add({"has-no-segment-size", "SEL-4", S::always, "", "",
       describes([](weft::Attributes& attributes) { attributes.segment_size = 0; })});

  add(beneath("tells-no-port-on-ipv6", "CON-1", S::corner));
  add(beneath("forgets-the-other-family", "CON-1", S::corner));
  add(beneath("calls-refused-unreachable", "CON-2", S::always));
  add({"waiting-leaves-the-report", "CON-2", S::corner, "", "", made<WaitingLeavesTheReport>()});
  add({"a-failed-attempt-spoils-the-next", "CON-3", S::always, "", "", made<AFailedAttemptSpoilsTheNext>()});
  add({"leaves-a-descriptor-now-and-then",
       "CON-3",
       S::rare,
       "",
       "",
       made<LeavesADescriptorNowAndThen>(),
       {},
       8});
  add(beneath("private-data-ends-at-a-zero", "CON-4", S::corner));
  add(beneath("pads-odd-private-data", "CON-4", S::corner));
  add(beneath("the-longest-private-data-loses-a-byte", "CON-4", S::corner));
  add({"early-receives-come-backwards", "CON-5", S::corner, "", "", made<EarlyReceivesComeBackwards>()});
  add({"loses-the-first-message-in-a-hurry", "CON-5", S::corner, "", "",
       made<LosesTheFirstMessageInAHurry>()});
  // CON-5: "Send-side posts answer `again` until it is up."
  add({"takes-sends-before-it-is-up", "CON-5", S::always, "", "",
       on_post([](OnPost& m, Endpoint& e, const WorkRequest& w) -> std::optional<Status> {
         if (e.is_up() || w.operation != Operation::send || !m.strikes()) return std::nullopt;
         return Status::ok;
       })});
  add(beneath("says-nothing-when-out-of-descriptors", "CON-6", S::corner));
  add(beneath("turns-one-of-many-away", "CON-6", S::rare));
  add(beneath("keeps-silent-peers", "CON-7", S::always));
  add(beneath("serves-one-stranger-at-a-time", "CON-7", S::corner));
  add(beneath("refuses-without-names", "CON-8", S::always));
  add({"keeps-its-own-receive-depth", "CON-8", S::corner, "", "", made<KeepsItsOwnDepths>()});

  add(beneath("watches-nobody", "ERR-3", S::corner));
  add(beneath("gives-up-on-full-sockets", "ERR-3", S::corner));
  add(beneath("interrupted-waits-time-out", "ERR-6", S::always));
  add(beneath("oversleeps", "PRG-3", S::always));
  add(beneath("does-not-sleep", "PRG-3", S::always));

  add({"keeps-what-attacks-brought", "SEC-1", S::corner, "", "", made<KeepsWhatAttacksBrought>()});
  add(beneath("keeps-a-buffer-for-each-stranger", "SEC-1", S::corner));
  add(beneath("keys-count-up", "SEC-2", S::corner));
  add(beneath("keys-have-32-random-bits", "SEC-2", S::corner));
  add({"says-nothing-of-encryption", "SEC-3", S::always, "", "", describes([](weft::Attributes& attributes) {
         attributes.trust_text = "only what the other end of a connection sends is taken";
       })});
  add({"claims-to-be-encrypted", "SEC-3", S::corner, "", "", describes([](weft::Attributes& attributes) {
         attributes.trust_text = "everything is encrypted and authenticated";
       })});
}

}  // namespace mutants
