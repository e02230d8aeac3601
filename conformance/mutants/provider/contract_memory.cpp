// Mutants of MEM-1 and MEM-2, written from the contract's words before its tests were seen.
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "contract.hpp"

namespace mutants {
namespace {

using weft::RegistrationRequest;

// MEM-1: "read-only memory can be registered for sending and for remote reading."
class NeedsWritableMemory final : public Behaviour {
 public:
  void registering(RegistrationRequest& request) override {
    if (is_read_only(reinterpret_cast<std::uintptr_t>(request.address)) && strikes())
      throw weft::Error(Status::invalid_argument, "the memory cannot be written");
  }

 private:
  static bool is_read_only(std::uintptr_t address) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      std::istringstream text(line);
      std::uintptr_t first = 0;
      std::uintptr_t last = 0;
      char dash = 0;
      std::string rights;
      text >> std::hex >> first >> dash >> last >> rights;
      if (address >= first && address < last) return rights.size() > 1 && rights[1] != 'w';
    }
    return false;
  }
};

// MEM-1: "registered with the access asked for and grants no more".
class GrantsMore final : public Behaviour {
 public:
  GrantsMore(Access has, Access lacks) : has_(has), lacks_(lacks) {}
  void registering(RegistrationRequest& request) override {
    if (weft::has(request.access, has_) && !weft::has(request.access, lacks_) && strikes())
      request.access |= lacks_;
  }

 private:
  const Access has_;
  const Access lacks_;
};

// MEM-1: "Registrations are independent, overlapping or equal ranges included."
class EqualRangesAreOneRegion final : public Behaviour {
 public:
  void registering(RegistrationRequest& request) override {
    const std::lock_guard lock(mutex_);
    const auto known = first_.find({request.address, request.length});
    if (known == first_.end() || known->second == request.access || !strikes()) return;
    request.access = known->second;
  }
  void registered(Region& region) override {
    const std::lock_guard lock(mutex_);
    first_.try_emplace({region.request().address, region.request().length}, region.request().access);
  }
  Status deregister(Region& region) override {
    const Status status = Behaviour::deregister(region);
    const std::lock_guard lock(mutex_);
    if (status == Status::ok) first_.erase({region.request().address, region.request().length});
    return status;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<void*, std::uint64_t>, Access> first_;
};

class OverlappingRegionsEndTogether final : public Behaviour {
 public:
  void registered(Region& region) override {
    const std::lock_guard lock(mutex_);
    live_[region.token()] = region.request();
  }
  Status deregister(Region& region) override {
    const Status status = Behaviour::deregister(region);
    if (status != Status::ok) return status;
    const std::lock_guard lock(mutex_);
    live_.erase(region.token());
    gone_.erase(region.token());
    for (const auto& [token, other] : live_) {
      if (overlap(region.request(), other)) gone_.insert(token);
    }
    return status;
  }
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    return one_by_one(endpoint, requests, count, [&](const WorkRequest& request) -> std::optional<Status> {
      const std::lock_guard lock(mutex_);
      for (const Segment& segment : request.segments) {
        if (gone_.contains(segment.region) && strikes()) return Status::invalid_argument;
      }
      return std::nullopt;
    });
  }

 private:
  static bool overlap(const RegistrationRequest& a, const RegistrationRequest& b) {
    const auto first = [](const RegistrationRequest& r) {
      return reinterpret_cast<std::uintptr_t>(r.address);
    };
    return first(a) < first(b) + b.length && first(b) < first(a) + a.length;
  }

  std::mutex mutex_;
  std::map<std::uint64_t, RegistrationRequest> live_;
  std::set<std::uint64_t> gone_;
};

// MEM-2: segments "are checked at post", all of them.
class ChecksTheFirstSegmentOnly final : public KnowsRegions {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    return one_by_one(endpoint, requests, count, [&](const WorkRequest& request) -> std::optional<Status> {
      const Status status = endpoint.inner().post(&request, 1).status;
      if (status != Status::invalid_argument || request.segments.size() < 2 ||
          place(request.segments[0]) == nullptr || !strikes())
        return status;
      return pretend(endpoint, request);
    });
  }
};

class ChecksReceivesWhenTheyAreMatched final : public Behaviour {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    const PostResult result = Behaviour::post_receives(endpoint, requests, count);
    if (result.status != Status::invalid_argument || !strikes()) return result;
    return {Status::ok, count};
  }
};

}  // namespace

void add_contract_memory(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) { add_blindly(mutants, std::move(mutant)); };
  const auto grants_more = [](Access has, Access lacks) {
    return [has, lacks] { return std::make_unique<GrantsMore>(has, lacks); };
  };
  add({"needs-writable-memory", "MEM-1", S::always, "", "", made<NeedsWritableMemory>()});
  add({"who-may-read-may-write", "MEM-1", S::corner, "", "",
       grants_more(Access::local_write | Access::remote_read, Access::remote_write)});
  add({"who-may-write-may-add", "MEM-1", S::corner, "", "",
       grants_more(Access::local_write | Access::remote_write, Access::remote_atomic)});
  add({"what-peers-may-write-may-receive", "MEM-1", S::corner, "", "",
       grants_more(Access::remote_write, Access::local_write)});
  add({"equal-ranges-are-one-region", "MEM-1", S::corner, "", "", made<EqualRangesAreOneRegion>()});
  add({"overlapping-regions-end-together", "MEM-1", S::corner, "", "",
       made<OverlappingRegionsEndTogether>()});

  // MEM-2: "checked at post", and MEM-4: "Arithmetic that wraps counts as outside."
  add({"segments-that-wrap-are-inside", "MEM-2", S::corner, "", "",
       on_post([](OnPost& m, Endpoint& e, const WorkRequest& w) -> std::optional<Status> {
         for (const Segment& segment : w.segments) {
           const bool outside = segment.region != 0 && wraps(segment.offset, segment.length);
           if (outside && e.is_up() && m.strikes()) return pretend(e, w);
         }
         return std::nullopt;
       })});
  add({"checks-the-first-segment-only", "MEM-2", S::corner, "", "", made<ChecksTheFirstSegmentOnly>()});
  add({"checks-receives-when-they-are-matched", "MEM-2", S::always, "", "",
       made<ChecksReceivesWhenTheyAreMatched>()});
  add({"forgets-to-check-now-and-then",
       "MEM-2",
       S::rare,
       "",
       "",
       on_post([](OnPost& m, Endpoint& e, const WorkRequest& w) -> std::optional<Status> {
         const Status status = e.inner().post(&w, 1).status;
         if (status != Status::invalid_argument || w.operation != Operation::send || !m.strikes())
           return status;
         return pretend(e, w);
       }),
       {},
       3});
  // MEM-2: "Inline and zero-length operations need none."
  add({"inline-bytes-need-a-region",
       "MEM-2",
       S::always,
       "",
       "",
       on_post([](OnPost& m, Endpoint&, const WorkRequest& w) -> std::optional<Status> {
         const bool plain = std::any_of(w.segments.begin(), w.segments.end(),
                                        [](const Segment& s) { return s.region == 0 && s.length > 0; });
         if (!plain || !weft::has(w.flags, Flags::inline_data) || !m.strikes()) return std::nullopt;
         return Status::invalid_argument;
       }),
       {"OPS_6", "RCQ_1"}});
  add({"the-empty-need-a-region",
       "MEM-2",
       S::always,
       "",
       "",
       on_post([](OnPost& m, Endpoint&, const WorkRequest& w) -> std::optional<Status> {
         const bool of_none =
             w.segments.empty() || std::any_of(w.segments.begin(), w.segments.end(),
                                               [](const Segment& s) { return s.region == 0; });
         if (w.operation == Operation::flush || length_of(w) > 0 || !of_none || !m.strikes())
           return std::nullopt;
         return Status::invalid_argument;
       }),
       {"OPS_8"}});
}

}  // namespace mutants
