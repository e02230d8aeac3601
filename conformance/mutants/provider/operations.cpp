// Mutants of the rules OPS.
#include <byteswap.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "mutant.hpp"

namespace mutants {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t large = 65536;

bool is_signalled(const WorkRequest& request) { return !has(request.flags, Flags::unsignalled); }

// Says that it is done, and does nothing.
Status swallow(Endpoint& endpoint, const WorkRequest& request) {
  if (is_signalled(request)) endpoint.send_queue().inject(endpoint.completion_of(request));
  return Status::ok;
}

class ReversesBatches final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count < 2 || !strikes()) return Behaviour::post(endpoint, requests, count);
    const std::vector<WorkRequest> reversed(std::make_reverse_iterator(requests + count),
                                            std::make_reverse_iterator(requests));
    return endpoint.inner().post(reversed.data(), count);
  }
};

class CountsTooMany final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    PostResult result = Behaviour::post(endpoint, requests, count);
    if (result.accepted < count && count > 1 && strikes()) ++result.accepted;
    return result;
  }
};

class GoesOnAfterTheFirstRefusal final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    const PostResult result = Behaviour::post(endpoint, requests, count);
    const std::size_t next = result.accepted + 1;
    if (next < count && strikes()) (void)endpoint.inner().post(requests + next, count - next);
    return result;
  }
};

// Takes what finds no room and forgets it.
class TakesWithoutEnd final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    PostResult result = Behaviour::post(endpoint, requests, count);
    if (result.status == Status::again && endpoint.is_up() && strikes()) {
      for (; result.accepted < count; ++result.accepted) (void)swallow(endpoint, requests[result.accepted]);
      result.status = Status::ok;
    }
    return result;
  }
};

// Inline bytes are read when the program polls next, not at post.
class ReadsInlineLate final : public Behaviour {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count != 1 || !has(requests[0].flags, Flags::inline_data) || length_of(requests[0]) == 0 ||
        length_of(requests[0]) > 32 || requests[0].segments.size() != 1 || !strikes()) {
      return Behaviour::post(endpoint, requests, count);
    }
    const std::lock_guard lock(mutex_);
    late_.push_back({&endpoint, requests[0], requests[0].segments[0]});
    return {Status::ok, 1};
  }
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override {
    {
      const std::lock_guard lock(mutex_);
      for (Late& late : late_) {
        late.request.segments = {&late.segment, 1};
        (void)late.endpoint->inner().post(&late.request, 1);
      }
      late_.clear();
    }
    return Behaviour::poll(queue, out, room);
  }

 private:
  struct Late {
    Endpoint* endpoint;
    WorkRequest request;
    Segment segment;
  };
  std::mutex mutex_;
  std::vector<Late> late_;
};

// Changes the list of segments; the list must live until the post is over.
class OnSegments final : public Behaviour {
 public:
  using Edit = std::function<bool(OnSegments&, const WorkRequest&, std::vector<Segment>&)>;
  explicit OnSegments(Edit edit) : edit_(std::move(edit)) {}
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    PostResult result;
    if (count == 0) return Behaviour::post(endpoint, requests, count);
    for (; result.accepted < count; ++result.accepted) {
      WorkRequest request = requests[result.accepted];
      std::vector<Segment> segments(request.segments.begin(), request.segments.end());
      if (edit_(*this, request, segments)) request.segments = segments;
      result.status = endpoint.inner().post(&request, 1).status;
      if (result.status != Status::ok) break;
    }
    return result;
  }
  using Behaviour::strikes;

 private:
  const Edit edit_;
};

auto segments(OnSegments::Edit edit) {
  return [edit] { return std::make_unique<OnSegments>(edit); };
}

// Flushes say that they are done, and writes leave late.
class FlushesNothing final : public Behaviour {
 public:
  void open(provider::Context& inner, const provider::OpenRequest& /*request*/) override {
    if (auto* const switches = dynamic_cast<provider::StrictSwitches*>(&inner)) (void)switches->hold_writes();
  }
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count != 1 || requests[0].operation != Operation::flush || !strikes()) {
      return Behaviour::post(endpoint, requests, count);
    }
    return {swallow(endpoint, requests[0]), 1};
  }
};

class HasALimitThatIsNotTrue final : public Behaviour {
 public:
  static constexpr std::uint64_t limit = std::uint64_t{1} << 20;
  weft::Limits limits(const Endpoint& /*endpoint*/, weft::Limits limits) override {
    limits.max_message = limit;
    return limits;
  }
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override {
    if (count == 1 && requests[0].operation == Operation::send && length_of(requests[0]) == limit &&
        strikes()) {
      return {Status::too_big, 0};
    }
    return Behaviour::post(endpoint, requests, count);
  }
};

class TakesOneReceiveLess final : public Behaviour {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override {
    const std::uint32_t depth = endpoint.inner().limits().receive_depth;
    if (posted_ + count >= depth && count != 0 && strikes()) return {Status::again, 0};
    const PostResult result = Behaviour::post_receives(endpoint, requests, count);
    posted_ += result.accepted;
    return result;
  }

 private:
  std::uint64_t posted_ = 0;
};

void swap_immediate(Completion& entry) { entry.immediate = bswap_32(entry.immediate); }

}  // namespace

void add_operations(std::vector<Mutant>& mutants) {
  using S = Strength;
  const auto add = [&](Mutant mutant) { mutants.push_back(std::move(mutant)); };
  add({"full-is-invalid", "OPS-1", S::always, "a_full_queue", "",
       answer([](OnAnswer& m, Endpoint& e, const WorkRequest&, PostResult& r) {
         if (r.status == Status::again && e.is_up() && m.strikes()) r.status = Status::invalid_argument;
       })});
  add({"too-big-is-again",
       "OPS-1",
       S::corner,
       "a_full_queue",
       "too_big",
       answer([](OnAnswer& m, Endpoint&, const WorkRequest&, PostResult& r) {
         if (r.status == Status::too_big && m.strikes()) r.status = Status::again;
       }),
       {"OPS_6"}});
  add({"ended-is-again",
       "OPS-1",
       S::always,
       "after_the_end",
       "not_connected",
       answer([](OnAnswer& m, Endpoint&, const WorkRequest&, PostResult& r) {
         if (r.status == Status::not_connected && m.strikes()) r.status = Status::again;
       }),
       {"ERR_2"}});
  add({"ended-is-again-now-and-then",
       "OPS-1",
       S::rare,
       "after_the_end",
       "not_connected",
       answer([](OnAnswer& m, Endpoint&, const WorkRequest&, PostResult& r) {
         if (r.status == Status::not_connected && m.strikes()) r.status = Status::again;
       }),
       {},
       400});
  add({"large-posts-block",
       "OPS-1",
       S::corner,
       "posting_answers_at_once",
       "",
       on_post([](OnPost& m, Endpoint&, const WorkRequest& r) -> std::optional<Status> {
         if (length_of(r) >= large && m.strikes()) std::this_thread::sleep_for(300ms);
         return {};
       }),
       {},
       20});
  add({"one-receive-less-than-stated", "OPS-1", S::corner, "receives_beyond", "",
       made<TakesOneReceiveLess>()});
  add({"batches-backwards", "OPS-2", S::always, "", "", made<ReversesBatches>()});
  add({"counts-the-refused-one", "OPS-2", S::always, "", "", made<CountsTooMany>()});
  add({"goes-on-after-a-refusal", "OPS-2", S::corner, "", "", made<GoesOnAfterTheFirstRefusal>()});
  add({"loses-large-messages", "OPS-3", S::corner, "", "",
       on_post([](OnPost& m, Endpoint& e, const WorkRequest& r) -> std::optional<Status> {
         if (r.operation != Operation::send || length_of(r) < large || !m.strikes()) return {};
         return swallow(e, r);
       })});
  add({"takes-without-end", "OPS-3", S::corner, "is_bounded", "", made<TakesWithoutEnd>()});
  add({"immediate-in-wire-order",
       "OPS-4",
       S::always,
       "",
       "immediate",
       entry([](OnEntry& m, Completion& c) {
         if (c.has_immediate && m.strikes()) swap_immediate(c);
         return 1;
       }),
       {"OPS_8"}});
  add({"immediate-without-its-mark", "OPS-4", S::always, "", "has_immediate",
       entry([](OnEntry& m, Completion& c) {
         if (c.has_immediate && m.strikes()) c.has_immediate = false;
         return 1;
       })});
  add({"write-with-immediate-tells-no-length", "OPS-4", S::corner, "write_with_immediate", "bytes",
       entry([](OnEntry& m, Completion& c) {
         if (c.operation == Operation::receive && c.has_immediate && c.bytes != 0 && m.strikes()) c.bytes = 0;
         return 1;
       })});
  add({"adds-one-more", "OPS-5", S::always, "fetch_add", "",
       request([](OnRequest& m, Endpoint&, WorkRequest& r) {
         if (r.operation == Operation::fetch_add && m.strikes()) ++r.operand;
       })});
  add({"adds-one-more-now-and-then",
       "OPS-5",
       S::rare,
       "additions_of_two",
       "",
       request([](OnRequest& m, Endpoint&, WorkRequest& r) {
         if (r.operation == Operation::fetch_add && m.strikes()) ++r.operand;
       }),
       {},
       500});
  add({"swaps-whatever-is-there", "OPS-5", S::always, "compare_swap", "",
       request([](OnRequest& m, Endpoint&, WorkRequest& r) {
         if (r.operation == Operation::compare_swap && m.strikes()) std::swap(r.operand, r.compare);
       })});
  add({"takes-misaligned-atomics", "OPS-5", S::corner, "misaligned", "invalid_argument",
       answer([](OnAnswer& m, Endpoint& e, const WorkRequest& w, PostResult& r) {
         if (w.operation != Operation::fetch_add || r.status != Status::invalid_argument || !m.strikes())
           return;
         r.status = swallow(e, w);
         ++r.accepted;
       })});
  add({"reads-all-but-the-last-byte",
       "OPS-5",
       S::always,
       "writes_and_reads",
       "",
       segments([](OnSegments& m, const WorkRequest& r, std::vector<Segment>& s) {
         if (r.operation != Operation::read || s.empty() || s.back().length == 0 || !m.strikes())
           return false;
         --s.back().length;
         return true;
       }),
       {"OPS_8", "OPS_7"}});
  add({"inline-bytes-read-late", "OPS-6", S::always, "inline_bytes", "", made<ReadsInlineLate>(), {"OPS_6"}});
  add({"inline-limit-one-less", "OPS-6", S::corner, "inline_bytes", "too_big",
       on_post([](OnPost& m, Endpoint& e, const WorkRequest& r) -> std::optional<Status> {
         if (!has(r.flags, Flags::inline_data) || length_of(r) != e.inner().limits().max_inline ||
             !m.strikes())
           return {};
         return Status::too_big;
       })});
  add({"fourth-segment-lost", "OPS-7", S::corner, "scatter", "",
       segments([](OnSegments& m, const WorkRequest&, std::vector<Segment>& s) {
         if (s.size() < 4 || !m.strikes()) return false;
         s.resize(3);
         return true;
       })});
  add({"takes-a-segment-too-many", "OPS-7", S::corner, "too_many", "invalid_argument",
       segments([](OnSegments& m, const WorkRequest&, std::vector<Segment>& s) {
         if (s.size() != 17 || !m.strikes()) return false;
         s.pop_back();
         return true;
       })});
  add({"swallows-empty-messages", "OPS-8", S::corner, "zero_length_messages", "",
       on_post([](OnPost& m, Endpoint& e, const WorkRequest& r) -> std::optional<Status> {
         if (r.operation != Operation::send || length_of(r) != 0 || !m.strikes()) return {};
         return swallow(e, r);
       })});
  add({"refuses-empty-writes",
       "OPS-8",
       S::corner,
       "zero_length_one_sided",
       "invalid_argument",
       on_post([](OnPost& m, Endpoint&, const WorkRequest& r) -> std::optional<Status> {
         if (r.operation != Operation::write || length_of(r) != 0 || !m.strikes()) return {};
         return Status::invalid_argument;
       }),
       {"OPS_8"}});
  add({"limit-that-does-not-work", "OPS-9", S::corner, "", "too_big", made<HasALimitThatIsNotTrue>()});
  add({"loses-the-last-byte-of-64-kib", "OPS-9", S::corner, "messages_at", "",
       segments([](OnSegments& m, const WorkRequest& r, std::vector<Segment>& s) {
         if (r.operation != Operation::send || length_of(r) != large || s.size() != 1 || !m.strikes())
           return false;
         --s[0].length;
         return true;
       })});
  add({"contexts-of-32-bits", "OPS-10", S::corner, "", "context", entry([](OnEntry& m, Completion& c) {
         if (c.context > UINT32_MAX && m.strikes()) c.context &= UINT32_MAX;
         return 1;
       })});
  add({"contexts-made-unique",
       "OPS-10",
       S::always,
       "",
       "context",
       [] {
         return std::make_unique<OnEntry>([last = Completion()](OnEntry& m, Completion& c) mutable {
           const bool again = c.operation == last.operation && c.context == last.context &&
                              c.endpoint_id == last.endpoint_id;
           last = c;
           if (again && m.strikes()) ++c.context;
           return 1;
         });
       },
       {"ERR_2"}});
  add({"flushes-nothing", "OPS-11", S::always, "flush_makes", "", made<FlushesNothing>(), {"ERR_2"}});
}

}  // namespace mutants
