// How atomics, inline, segments and empty operations go wrong (OPS-5 to OPS-8), by a reader of the contract
// who had not seen the rules' tests.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "disguise.hpp"
#include "mutant.hpp"
#include "overtaking.hpp"

namespace mutants {
namespace {

// OPS-5: "Atomicity holds among all operations on a region, whoever they come from". A read, and with what it
// found a write: another's addition in between is lost.
class AddsInTwoSteps final : public Disguise {
 public:
  void registering(weft::RegistrationRequest& request) override {
    if (weft::has(request.access, Access::remote_atomic))
      request.access |= Access::remote_read | Access::remote_write;
  }
  void go_up(Endpoint& endpoint) override {
    {
      const std::lock_guard lock(mutex_);
      endpoints_[endpoint.id()] = &endpoint;
    }
    Disguise::go_up(endpoint);
  }
  void destroyed(Endpoint& endpoint) override {
    {
      const std::lock_guard lock(mutex_);
      endpoints_.erase(endpoint.id());
    }
    Disguise::destroyed(endpoint);
  }

 protected:
  void change(Endpoint& /*endpoint*/, WorkRequest& request) override {
    if (request.operation == Operation::fetch_add && is_signalled(request) && strikes())
      request.operation = Operation::read;
  }
  void done(const Posted& posted, Completion& entry) override {
    const auto found = endpoints_.find(entry.endpoint_id);
    if (posted.told.operation != Operation::fetch_add || found == endpoints_.end()) return;
    std::uint64_t sum = 0;
    with_value(posted.first, [&](std::uint64_t& value) { sum = value + posted.operand; });
    const Segment source = Segment::inline_bytes(&sum, sizeof(sum));
    WorkRequest write;
    write.operation = Operation::write;
    write.flags = Flags::unsignalled | Flags::inline_data;
    write.segments = {&source, 1};
    write.remote = posted.remote;
    (void)found->second->inner().post(&write, 1);
  }

 private:
  std::map<std::uint32_t, Endpoint*> endpoints_;
};

// OPS-5: "addresses not a multiple of 8 are `invalid_argument`".
class HalfwayIsAligned final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const PostResult result = Behaviour::post(endpoint, requests, count);
    if (count != 1 || result.status != Status::invalid_argument || !is_atomic(requests[0].operation) ||
        requests[0].remote.offset < 4) {
      return result;
    }
    WorkRequest lower = requests[0];
    lower.remote.offset -= 4;
    const PostResult second = Behaviour::post(endpoint, &lower, 1);
    return second.status == Status::ok && strikes() ? second : result;
  }
};

// OPS-5: addresses count, not offsets: a region may begin anywhere.
class LooksAtTheOffsetOnly final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    constexpr std::uint64_t word = sizeof(std::uint64_t);
    if (count != 1 || !is_atomic(requests[0].operation)) return Behaviour::post(endpoint, requests, count);
    const PostResult result = Behaviour::post(endpoint, requests, count);
    if (result.status != Status::invalid_argument || requests[0].remote.offset % word != 0) return result;
    for (std::uint64_t more = 1; more < word; ++more) {
      WorkRequest beside = requests[0];
      beside.remote.offset += more;
      const PostResult second = Behaviour::post(endpoint, &beside, 1);
      if (second.status == Status::ok && strikes()) return second;
    }
    return result;
  }
};

// OPS-5, "fetch": the value that was there.
class FetchAddTellsTheSum final : public Disguise {
 protected:
  void done(const Posted& posted, Completion& /*entry*/) override {
    if (posted.told.operation != Operation::fetch_add || posted.operand == 0 || !strikes()) return;
    with_value(posted.first, [&](std::uint64_t& value) { value += posted.operand; });
  }
};

// OPS-5, the old value, also when nothing was swapped.
class AnUnsuccessfulSwapTellsWhatWasWanted final : public Disguise {
 protected:
  void done(const Posted& posted, Completion& /*entry*/) override {
    if (posted.told.operation != Operation::compare_swap) return;
    with_value(posted.first, [&](std::uint64_t& value) {
      if (value != posted.compare && strikes()) value = posted.compare;
    });
  }
};

// OPS-5: "The region's attribute `atomic_scope` tells (`device`, `device_and_cpu`)".
class RegionsTellNoScope final : public Behaviour {
 public:
  weft::AtomicScope atomic_scope(const Region& region) override {
    const weft::AtomicScope scope = Behaviour::atomic_scope(region);
    return scope != weft::AtomicScope::none && strikes() ? weft::AtomicScope::none : scope;
  }
};

// OPS-6: "the bytes are copied at post". The last one of its limit is not.
class LosesTheLastInlineByte final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const std::uint64_t most = endpoint.inner().limits().max_inline;
    if (count != 1 || !is_inline(requests[0]) || length_of(requests[0]) != most ||
        requests[0].segments.size() != 1 || requests[0].segments[0].region != 0 || !strikes()) {
      return Behaviour::post(endpoint, requests, count);
    }
    const auto* first = reinterpret_cast<const std::byte*>(requests[0].segments[0].offset);
    std::vector<std::byte> bytes(first, first + most);
    bytes.back() ^= std::byte{0xff};
    const Segment segment = Segment::inline_bytes(bytes.data(), bytes.size());
    WorkRequest request = requests[0];
    request.segments = {&segment, 1};
    return Behaviour::post(endpoint, &request, 1);
  }
};

// Lets the segments of some requests be others.
class OnSegments : public Behaviour {
 public:
  using Kind = std::function<bool(const WorkRequest&)>;
  using Edit = std::function<bool(std::vector<Segment>&)>;  // false: as they were
  OnSegments(Kind kind, Edit edit) : kind_(std::move(kind)), edit_(std::move(edit)) {}
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    PostResult result;
    if (count == 0) return Behaviour::post(endpoint, requests, count);
    for (; result.accepted < count; ++result.accepted) {
      WorkRequest request = requests[result.accepted];
      std::vector<Segment> segments(request.segments.begin(), request.segments.end());
      if (kind_(request) && edit_(segments) && strikes()) request.segments = segments;
      result.status = Behaviour::post(endpoint, &request, 1).status;
      if (result.status != Status::ok) break;
    }
    return result;
  }

 private:
  const Kind kind_;
  const Edit edit_;
};
[[nodiscard]] auto segments(const OnSegments::Kind& kind, const OnSegments::Edit& edit) {
  return [=] { return std::make_unique<OnSegments>(kind, edit); };
}
bool backwards(std::vector<Segment>& segments) {
  if (segments.size() < 2) return false;
  std::reverse(segments.begin(), segments.end());
  return true;
}
bool of_one_region(std::vector<Segment>& segments) {
  bool changed = false;
  for (Segment& segment : segments) {
    changed = changed || segment.region != segments[0].region;
    segment.region = segments[0].region;
  }
  return changed;
}
bool until_an_empty_one(std::vector<Segment>& segments) {
  const auto empty = std::find_if(segments.begin(), segments.end(),
                                  [](const Segment& segment) { return segment.length == 0; });
  if (empty == segments.end() || empty + 1 == segments.end()) return false;
  segments.erase(empty, segments.end());
  return true;
}

// OPS-7: segments "on […] receive", of a shared queue as well.
class SharedReceivesScatterBackwards final : public Behaviour {
 public:
  PostResult post_shared(Receives& receives, const ReceiveRequest* requests, std::size_t count) override {
    PostResult result;
    if (count == 0) return Behaviour::post_shared(receives, requests, count);
    for (; result.accepted < count; ++result.accepted) {
      const ReceiveRequest& request = requests[result.accepted];
      std::vector<Segment> segments(request.segments.begin(), request.segments.end());
      if (backwards(segments)) (void)strikes();
      const ReceiveRequest changed{request.context, segments};
      result.status = Behaviour::post_shared(receives, &changed, 1).status;
      if (result.status != Status::ok) break;
    }
    return result;
  }
};

// OPS-8: "Zero length is legal for […] receive […], with null pointers and no region".
class EmptyReceivesAreRefused final : public Behaviour {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) {
      if (!requests[i].segments.empty() || !strikes()) continue;
      const PostResult before = Behaviour::post_receives(endpoint, requests, i);
      return before.status == Status::ok ? PostResult{Status::invalid_argument, i} : before;
    }
    return Behaviour::post_receives(endpoint, requests, count);
  }
};

}  // namespace

void add_contract_operations(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) {
    mutant.from_contract = true;
    mutants.push_back(std::move(mutant));
  };
  constexpr std::uint64_t low_half = std::numeric_limits<std::uint32_t>::max();

  add({"adds-in-two-steps", "OPS-5", S::corner, "", "", made<AddsInTwoSteps>()});
  // OPS-5: "act on the target's native 64-bit value".
  add({"adds-in-wire-order", "OPS-5", S::always, "", "", request([](OnRequest& m, Endpoint&, WorkRequest& w) {
         if (w.operation == Operation::fetch_add && m.strikes()) w.operand = __builtin_bswap64(w.operand);
       })});
  // OPS-5: "64-bit […] compare-and-swap".
  add({"compares-the-low-half", "OPS-5", S::corner, "", "",
       request([](OnRequest& m, Endpoint&, WorkRequest& w) {
         if (w.operation == Operation::compare_swap && w.compare > low_half && m.strikes())
           w.compare &= low_half;
       })});
  add({"halfway-is-aligned", "OPS-5", S::corner, "", "", made<HalfwayIsAligned>()});
  add({"looks-at-the-offset-only", "OPS-5", S::corner, "", "", made<LooksAtTheOffsetOnly>()});
  add({"fetch-add-tells-the-sum", "OPS-5", S::always, "", "", made<FetchAddTellsTheSum>()});
  add({"an-unsuccessful-swap-tells-what-was-wanted", "OPS-5", S::corner, "", "",
       made<AnUnsuccessfulSwapTellsWhatWasWanted>()});
  add({"regions-tell-no-scope", "OPS-5", S::always, "", "", made<RegionsTellNoScope>()});

  add({"loses-the-last-inline-byte-at-the-limit", "OPS-6", S::corner, "", "",
       made<LosesTheLastInlineByte>()});
  // OPS-6: "the bytes are copied at post", in the order of their pieces.
  add({"inline-pieces-backwards", "OPS-6", S::corner, "", "", segments(is_inline, backwards)});
  // OPS-6: "up to the stated maximum (at least 32 bytes)", whatever was wished for.
  add({"no-inline-where-none-was-wished", "OPS-6", S::corner, "", "", [] {
         class NoInlineWhereNoneWasWished final : public Behaviour {
          public:
           void prepared(const provider::EndpointRequest& request) override {
             const std::lock_guard lock(mutex_);
             if (request.max_inline < 32) wished_[request.id] = request.max_inline;
           }
           weft::Limits limits(const Endpoint& endpoint, weft::Limits limits) override {
             const std::lock_guard lock(mutex_);
             const auto found = wished_.find(endpoint.id());
             if (found != wished_.end() && strikes()) limits.max_inline = found->second;
             return limits;
           }

          private:
           std::mutex mutex_;
           std::map<std::uint32_t, std::uint32_t> wished_;
         };
         return std::make_unique<NoInlineWhereNoneWasWished>();
       }});
  // OPS-6 knows no operation of bytes that may not be inline.
  add({"no-inline-writes-with-immediate", "OPS-6", S::corner, "", "",
       on_post([](OnPost& m, Endpoint& e, const WorkRequest& w) -> std::optional<Status> {
         if (w.operation != Operation::write_with_immediate || !is_inline(w) || !e.is_up() || !m.strikes())
           return std::nullopt;
         return Status::unsupported;
       })});

  // OPS-7: "at least 4 segments on […] read".
  add({"reads-scatter-backwards", "OPS-7", S::always, "", "",
       segments([](const WorkRequest& w) { return w.operation == Operation::read; }, backwards)});
  // MEM-2 and OPS-7: each segment names its own region.
  add({"one-region-for-all-segments", "OPS-7", S::corner, "", "",
       segments([](const WorkRequest& w) { return !is_inline(w); }, of_one_region)});
  add({"shared-receives-scatter-backwards", "OPS-7", S::corner, "", "",
       made<SharedReceivesScatterBackwards>()});
  // OPS-7: an empty segment is one of the four, and not the end of them.
  add({"an-empty-segment-ends-the-list", "OPS-7", S::corner, "", "",
       segments([](const WorkRequest& w) { return !is_atomic(w.operation); }, until_an_empty_one)});

  add({"empty-receives-are-refused", "OPS-8", S::always, "", "", made<EmptyReceivesAreRefused>()});
  // OPS-8: "with null pointers and no region".
  add({"an-empty-read-needs-a-region",
       "OPS-8",
       S::always,
       "",
       "",
       on_post([](OnPost& m, Endpoint& e, const WorkRequest& w) -> std::optional<Status> {
         if (w.operation != Operation::read || length_of(w) != 0 || w.remote.memory != 0 || !e.is_up() ||
             !m.strikes())
           return std::nullopt;
         return Status::invalid_argument;
       }),
       {"OPS_8"}});
  add({"null-pointers-are-refused",
       "OPS-8",
       S::corner,
       "",
       "",
       on_post([](OnPost& m, Endpoint& e, const WorkRequest& w) -> std::optional<Status> {
         if (is_inline(w) || w.segments.empty() || length_of(w) != 0 || w.segments[0].region != 0 ||
             !e.is_up() || !m.strikes())
           return std::nullopt;
         return Status::invalid_argument;
       }),
       {"OPS_8"}});
  // OPS-8: a message of zero bytes has zero bytes.
  add({"empty-messages-tell-a-byte", "OPS-8", S::corner, "", "", entry([](OnEntry& m, Completion& c) {
         if (c.operation == Operation::receive && c.status == Status::ok && c.bytes == 0 && m.strikes())
           c.bytes = 1;
         return 1;
       })});
}

}  // namespace mutants
