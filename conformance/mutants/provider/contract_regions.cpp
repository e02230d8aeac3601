// Mutants of MEM-5 to MEM-8, written from the contract's words before its tests were seen.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <set>
#include <string>

#include "contract.hpp"

namespace mutants {
namespace {

using weft::RegistrationRequest;

// MEM-5: "`deregister()` while a local operation uses the region answers `busy` and changes nothing."
class BusyTakesTheRegionAway final : public Behaviour {
 public:
  Status deregister(Region& region) override {
    const Status status = Behaviour::deregister(region);
    const std::lock_guard lock(mutex_);
    if (status == Status::busy) {
      condemned_.insert(region.token());
    } else {
      condemned_.erase(region.token());
    }
    return status;
  }
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    return one_by_one(endpoint, requests, count, [&](const WorkRequest& request) -> std::optional<Status> {
      if (names_condemned(request.segments)) return Status::invalid_argument;
      return std::nullopt;
    });
  }
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    if (count > 0 && names_condemned(requests[0].segments)) return {Status::invalid_argument, 0};
    return Behaviour::post_receives(endpoint, requests, count);
  }

 private:
  bool names_condemned(std::span<const Segment> segments) {
    const std::lock_guard lock(mutex_);
    return std::any_of(segments.begin(), segments.end(),
                       [&](const Segment& s) { return condemned_.contains(s.region); }) &&
           strikes();
  }

  std::mutex mutex_;
  std::set<std::uint64_t> condemned_;
};

// MEM-5: "`busy` passes by itself: […] although nothing more is posted or polled".
class BusyPassesWhenPolled final : public Behaviour {
 public:
  Status deregister(Region& region) override {
    const std::uint64_t polls = polls_;
    const std::lock_guard lock(mutex_);
    const auto since = busy_since_.find(region.token());
    if (since != busy_since_.end() && since->second == polls && strikes()) return Status::busy;
    const Status status = Behaviour::deregister(region);
    if (status == Status::busy) busy_since_[region.token()] = polls;
    return status;
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    ++polls_;
    return Behaviour::poll(queue, out, room);
  }

 private:
  std::atomic<std::uint64_t> polls_{0};
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> busy_since_;
};

// MEM-5: "Once it has returned `ok`, no transfer, local or remote, touches the memory."
class WritingOutlivesTheRegion final : public Behaviour {
 public:
  Status deregister(Region& region) override {
    if (!weft::has(region.request().access, Access::remote_write) || !strikes())
      return Behaviour::deregister(region);
    return Status::ok;
  }
};

class OkNowAndThenWhereBusyIsRight final : public Behaviour {
 public:
  Status deregister(Region& region) override {
    const Status status = Behaviour::deregister(region);
    return status == Status::busy && strikes() ? Status::ok : status;
  }
};

rlim_t limit_now(decltype(RLIMIT_NOFILE) which) {
  rlimit limit{};
  getrlimit(which, &limit);
  return limit.rlim_cur;
}

// MEM-6: "the error says which, its current value and the size asked for": each says it in its own wrong way.
class LimitsLockedMemory final : public Behaviour {
 public:
  using Text = std::function<std::string(rlim_t now, rlim_t at_open, std::uint64_t size)>;
  LimitsLockedMemory(Status code, Text text) : code_(code), text_(std::move(text)) {}
  void open(provider::Context& /*inner*/, const provider::OpenRequest& /*request*/) override {
    at_open_ = limit_now(RLIMIT_MEMLOCK);
  }
  void registering(RegistrationRequest& request) override {
    const rlim_t limit = limit_now(RLIMIT_MEMLOCK);
    if (request.length > limit && strikes()) throw weft::Error(code_, text_(limit, at_open_, request.length));
  }

 private:
  const Status code_;
  const Text text_;
  rlim_t at_open_ = 0;
};

class NamesTheOtherLimit final : public Behaviour {
 public:
  void prepared(const provider::EndpointRequest& /*request*/) override {
    const rlim_t limit = limit_now(RLIMIT_NOFILE);
    if (limit < 100 && strikes()) {
      throw weft::Error(Status::resource_limit,
                        "cannot make an endpoint: RLIMIT_MEMLOCK is " + std::to_string(limit));
    }
  }
};

// MEM-7. Children of this process know that they are; parents how often they forked.
std::atomic<bool> is_child{false};
std::atomic<int> forks{0};
constexpr int most_sockets = 1024;
std::array<std::atomic<int>, most_sockets> sockets_to_shut{};
std::atomic<bool> child_hangs_up{false};

class KnowsForks : public Behaviour {
 public:
  KnowsForks() {
    static const int handler = pthread_atfork(
        nullptr, [] { ++forks; },
        [] {
          is_child = true;
          if (!child_hangs_up) return;
          for (const auto& socket : sockets_to_shut) {
            if (socket > 0) ::shutdown(socket, SHUT_RDWR);
          }
        });
    (void)handler;
  }
};

// "In the child every weft object is inert: calls fail".
class AChildMayPost final : public KnowsForks {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (!is_child || !strikes()) return Behaviour::post(endpoint, requests, count);
    return {Status::ok, count};
  }
};

class AChildMayPostReceives final : public KnowsForks {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    if (!is_child || !strikes()) return Behaviour::post_receives(endpoint, requests, count);
    return {Status::ok, count};
  }
};

class AChildIsToldOfCompletions final : public KnowsForks {
 public:
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    if (!is_child || room == 0 || told_ || !strikes()) return Behaviour::poll(queue, out, room);
    told_ = true;
    out[0] = {};
    return 1;
  }

 private:
  std::atomic<bool> told_{false};
};

// "fork() is safe for the parent: its transfers stay right".
class AForkCostsAWrite final : public KnowsForks {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    return one_by_one(endpoint, requests, count, [&](const WorkRequest& request) -> std::optional<Status> {
      const bool hit = request.operation == Operation::write && forks > forks_seen_ && length_of(request) > 0;
      if (!hit || !endpoint.is_up() || !strikes()) return std::nullopt;
      forks_seen_ = forks.load();
      return pretend(endpoint, request);
    });
  }

 private:
  std::atomic<int> forks_seen_{forks.load()};
};

// "fork() is safe for the parent"; "destructors touch only the child's own descriptors."
class AChildHangsUp final : public KnowsForks {
 public:
  AChildHangsUp() { child_hangs_up = true; }
  void establishing(Endpoint& endpoint, const provider::PeerParameters& peer) override {
    (void)strikes();
    const std::lock_guard lock(mutex_);
    for (auto& socket : sockets_to_shut) {
      if (socket != 0) continue;
      socket = peer.connection;
      owned_[&endpoint] = &socket;
      return;
    }
  }
  void destroyed(Endpoint& endpoint) override {
    const std::lock_guard lock(mutex_);
    const auto found = owned_.find(&endpoint);
    if (found == owned_.end()) return;
    *found->second = 0;
    owned_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::map<Endpoint*, std::atomic<int>*> owned_;
};

// MEM-8: "Everything sequenced before a post is visible to the transfer".
class SendsWhatWasThereBefore final : public KnowsRegions {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const std::uint32_t most = endpoint.limits().max_inline;
    return one_by_one(endpoint, requests, count, [&](const WorkRequest& request) -> std::optional<Status> {
      const bool fits = request.segments.size() == 1 && request.segments[0].length <= most &&
                        request.segments[0].length > 0;
      std::byte* const bytes =
          fits && request.operation == Operation::send ? place(request.segments[0]) : nullptr;
      if (bytes == nullptr) return std::nullopt;
      const std::lock_guard lock(mutex_);
      std::vector<std::byte> now(bytes, bytes + request.segments[0].length);
      std::vector<std::byte>& before = before_[bytes];
      if (before.size() != now.size() || before == now || !strikes()) {
        before = std::move(now);
        return std::nullopt;
      }
      WorkRequest stale = request;
      const Segment segment = Segment::inline_bytes(before.data(), before.size());
      stale.segments = {&segment, 1};
      stale.flags |= Flags::inline_data;
      const Status status = endpoint.inner().post(&stale, 1).status;
      if (status == Status::ok) before = std::move(now);
      return status;
    });
  }

 private:
  std::mutex mutex_;
  std::map<const std::byte*, std::vector<std::byte>> before_;
};

// MEM-8: "everything a transfer wrote is visible to the thread that took its completion."
class TheLastByteComesLate final : public KnowsRegions {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    const std::lock_guard lock(mutex_);
    const PostResult result = Behaviour::post_receives(endpoint, requests, count);
    for (std::size_t i = 0; i < result.accepted; ++i) {
      const auto& segments = requests[i].segments;
      places_[{endpoint.id(), requests[i].context}] =
          segments.size() == 1 ? Late{segments[0].region, place(segments[0]), {}} : Late{};
    }
    return result;
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    const std::lock_guard lock(mutex_);
    restore(0);
    const std::size_t count = Behaviour::poll(queue, out, room);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].operation != Operation::receive || out[i].status != Status::ok || out[i].bytes < 64)
        continue;
      const auto found = places_.find({out[i].endpoint_id, out[i].context});
      if (found == places_.end() || found->second.place == nullptr || !strikes()) continue;
      Late late = found->second;
      late.place += out[i].bytes - 1;
      late.value = *late.place;
      *late.place ^= std::byte{0xff};
      late_.push_back(late);
    }
    return count;
  }
  Status deregister(Region& region) override {
    const std::lock_guard lock(mutex_);
    restore(region.token());
    return KnowsRegions::deregister(region);
  }

 private:
  struct Late {
    std::uint64_t region = 0;
    std::byte* place = nullptr;
    std::byte value{};
  };
  // Of all regions, or of one.
  void restore(std::uint64_t token) {
    for (Late& late : late_) {
      if (token == 0 || late.region == token) *late.place = late.value;
    }
    std::erase_if(late_, [&](const Late& late) { return token == 0 || late.region == token; });
  }

  std::mutex mutex_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Late> places_;
  std::vector<Late> late_;
};

// MEM-8: "One buffer may be the source of many transfers at once."
class ABatchFromOneBufferStartsAtItsFront final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    std::uint64_t before = 0;
    return one_by_one(endpoint, requests, count, [&](const WorkRequest& request) -> std::optional<Status> {
      if (request.segments.size() != 1 || request.operation > Operation::write_with_immediate)
        return std::nullopt;
      Segment segment = request.segments[0];
      if (std::exchange(before, segment.region) != segment.region || segment.region == 0 ||
          segment.offset == 0 || !strikes())
        return std::nullopt;
      segment.offset = 0;
      WorkRequest changed = request;
      changed.segments = {&segment, 1};
      return endpoint.inner().post(&changed, 1).status;
    });
  }
};

}  // namespace

void add_contract_regions(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) { add_blindly(mutants, std::move(mutant)); };
  const auto limits = [](Status code, LimitsLockedMemory::Text text) {
    return [code, text] { return std::make_unique<LimitsLockedMemory>(code, text); };
  };
  using std::to_string;
  add({"busy-takes-the-region-away", "MEM-5", S::corner, "", "", made<BusyTakesTheRegionAway>()});
  add({"busy-passes-when-polled", "MEM-5", S::corner, "", "", made<BusyPassesWhenPolled>()});
  add({"writing-outlives-the-region", "MEM-5", S::always, "", "", made<WritingOutlivesTheRegion>()});
  add({"ok-now-and-then-where-busy-is-right",
       "MEM-5",
       S::rare,
       "",
       "",
       made<OkNowAndThenWhereBusyIsRight>(),
       {},
       5});
  add({"names-a-limit-without-the-size", "MEM-6", S::always, "", "",
       limits(Status::resource_limit, [](rlim_t now, rlim_t, std::uint64_t) {
         return "cannot register memory: the limit of locked memory (RLIMIT_MEMLOCK) is " + to_string(now) +
                " bytes";
       })});
  add({"calls-a-limit-a-bad-argument", "MEM-6", S::corner, "", "",
       limits(Status::invalid_argument, [](rlim_t now, rlim_t, std::uint64_t size) {
         return "cannot register " + to_string(size) +
                " bytes: the limit of locked memory (RLIMIT_MEMLOCK) is " + to_string(now) + " bytes";
       })});
  add({"tells-the-limit-of-the-start", "MEM-6", S::corner, "", "",
       limits(Status::resource_limit, [](rlim_t, rlim_t at_open, std::uint64_t size) {
         return "cannot register " + to_string(size) +
                " bytes: the limit of locked memory (RLIMIT_MEMLOCK) is " + to_string(at_open) + " bytes";
       })});
  add({"names-the-other-limit", "MEM-6", S::corner, "", "", made<NamesTheOtherLimit>()});
  add({"a-child-may-post", "MEM-7", S::always, "", "", made<AChildMayPost>()});
  add({"a-child-may-post-receives", "MEM-7", S::corner, "", "", made<AChildMayPostReceives>()});
  add({"a-child-is-told-of-completions", "MEM-7", S::corner, "", "", made<AChildIsToldOfCompletions>()});
  add({"a-fork-costs-a-write", "MEM-7", S::rare, "", "", made<AForkCostsAWrite>()});
  add({"a-child-hangs-up", "MEM-7", S::always, "", "", made<AChildHangsUp>()});
  add({"sends-what-was-there-before", "MEM-8", S::corner, "", "", made<SendsWhatWasThereBefore>()});
  add({"the-last-byte-comes-late", "MEM-8", S::rare, "", "", made<TheLastByteComesLate>(), {}, 5});
  add({"a-batch-from-one-buffer-starts-at-its-front", "MEM-8", S::corner, "", "",
       made<ABatchFromOneBufferStartsAtItsFront>()});
}

}  // namespace mutants
