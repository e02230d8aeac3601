// A message fabric in memory, which reorders, holds back, repeats, refuses and fails at will (by seed).
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>
#include <map>
#include <span>

#include "message_context.hpp"
#include "message_endpoint.hpp"
#include "pair.hpp"

namespace weft::engine::test {

struct FabricWeather {
  unsigned most_delivered = 1000;  // by one step, random up to this
  unsigned reach = 1;              // a message may overtake so many others, less one
  double repeats = 0;              // share of messages that come twice
  double refuses = 0;              // share of submissions that find no room
  double later = 0;                // share of buffers that are given back later
  bool doorbell = false;           // no descriptor of its own
  bool lingers = false;            // and what it has taken may wait for calls, or come after a ring
  bool takes_small = false;        // small messages within the call, from wherever they lie
  bool pulls = false;              // the target can fetch payload
  double pulls_later = 0;          // share of fetches that end later
  bool mixes_fetches = false;      // in any order
  bool natives = false;            // writes past the stream
  bool mixes_natives = false;      // which take effect in any order
  bool mute_paths = false;         // it has one, which tells nothing of what these endpoints' peers send
  std::uint64_t seed = 1;
};

class FakeFabricContext final : public MessageContext {
 public:
  FakeFabricContext(provider::Host& host, const provider::OpenRequest& request, const EngineOptions& options,
                    const MessageOptions& message_options)
      : MessageContext(host, request, options, message_options) {}
  int reachable = 0;  // regions

  [[nodiscard]] const Attributes& attributes() const noexcept override { return attributes_; }
  [[nodiscard]] ProtocolRange protocol() const noexcept override { return {}; }
  [[nodiscard]] std::unique_ptr<provider::CompletionQueue> create_completion_queue(
      std::uint32_t, provider::QueueEvents&) override {
    return nullptr;
  }
  [[nodiscard]] std::unique_ptr<provider::Endpoint> prepare_endpoint(
      const provider::EndpointRequest&) override {
    return nullptr;
  }

 protected:
  [[nodiscard]] std::uint64_t make_reachable(std::byte* address, std::uint64_t /*length*/) noexcept override {
    ++reachable;
    return reinterpret_cast<std::uint64_t>(address);
  }
  void make_unreachable(std::uint64_t /*native*/) noexcept override { --reachable; }

 private:
  Attributes attributes_;
};

class FakeFabricEndpoint;

class FakeFabricQueue final : public MessageQueue {
 public:
  // A fetch under way.
  struct Fetch {
    FakeFabricEndpoint* endpoint;
    std::uint64_t number;
    const std::byte* from;
    std::byte* to;
    std::uint64_t length;
  };

  FakeFabricQueue(FakeFabricContext& context, std::uint32_t capacity, provider::QueueEvents& events,
                  const FabricWeather& weather)
      : MessageQueue(context, capacity, events), weather_(weather), random_(weather.seed) {
    if (weather.lingers) let_messages_linger();
    if (!weather.doorbell) watch_fabric(descriptor_);
    context.look_after(*this);
  }
  ~FakeFabricQueue() override {
    leave_helper_alone();
    for (SendBuffer* buffer : later_) sent(*buffer);
    ::close(descriptor_);
  }

  [[nodiscard]] bool chance(double share) {
    return share > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < share;
  }
  void put(std::span<const std::byte> bytes) {
    inbox.emplace_back(bytes.begin(), bytes.end());
    if (weather_.reach > 1) {
      const std::size_t overtakes = std::uniform_int_distribution<std::size_t>(
          0, std::min<std::size_t>(weather_.reach, inbox.size()) - 1)(random_);
      for (std::size_t i = 0; i < overtakes; ++i) {
        std::swap(inbox[inbox.size() - 1 - i], inbox[inbox.size() - 2 - i]);
      }
    }
    if (chance(weather_.repeats)) inbox.push_back(inbox.back());
  }
  // The fabric's descriptor tells of something.
  void announce() const {
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(descriptor_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  // From here on no set takes the fabric's descriptor: it is one of a file.
  void make_unwatchable() const {
    const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ASSERT_GE(::dup3(file, descriptor_, O_CLOEXEC), 0);
    ::close(file);
  }
  void keep_for_later(SendBuffer& buffer) { later_.push_back(&buffer); }
  // Every buffer under way fails.
  void fail_all(std::int32_t code) {
    const Entry entry(gate());
    for (SendBuffer* buffer : std::exchange(later_, {})) send_failed(*buffer, code, "the fabric gave up");
  }
  [[nodiscard]] const FabricWeather& weather() const { return weather_; }
  [[nodiscard]] std::uint64_t buffers_under_way() { return buffers().under_way(); }
  [[nodiscard]] std::uint64_t buffers_free() { return buffers().free_count(); }

  // A native write under way.
  struct Native {
    FakeFabricEndpoint* endpoint;
    std::byte* to;
    std::vector<std::byte> bytes;
  };
  void write_later(Native native) { natives_.push_back(std::move(native)); }
  void forget_natives(const FakeFabricEndpoint& endpoint) {
    std::erase_if(natives_, [&](const Native& native) { return native.endpoint == &endpoint; });
  }
  [[nodiscard]] std::size_t natives_under_way() const { return natives_.size(); }

  void fetch_later(const Fetch& fetch) { fetches_.push_back(fetch); }
  void forget_fetch(const FakeFabricEndpoint& endpoint) {
    std::erase_if(fetches_, [&](const Fetch& fetch) { return fetch.endpoint == &endpoint; });
  }
  [[nodiscard]] std::size_t fetches_under_way() const { return fetches_.size(); }
  void fail_fetches(std::int32_t code);
  // Of those under way, counted from the oldest; outside of the queue's own calls.
  void end_one_fetch(std::size_t which, bool copies = true) {
    const Entry entry(gate());
    end_fetch(which, copies);
  }

  std::deque<std::vector<std::byte>> inbox;
  bool gives_back = true;
  bool ends_fetches = true;
  bool ends_natives = true;

 protected:
  bool progress() noexcept override {
    bool any = false;
    if (gives_back) {
      for (SendBuffer* buffer : std::exchange(later_, {})) {
        sent(*buffer);
        any = true;
      }
    }
    any = end_fetches() || any;
    any = end_natives() || any;
    const unsigned most = std::uniform_int_distribution<unsigned>(1, weather_.most_delivered)(random_);
    for (unsigned i = 0; i < most && !inbox.empty(); ++i) {
      const std::vector<std::byte> bytes = std::move(inbox.front());
      inbox.pop_front();
      message_arrived(bytes.data(), bytes.size());
      any = true;
    }
    return any;
  }
  [[nodiscard]] bool arm_fabric() noexcept override {
    return inbox.empty() && later_.empty() && (fetches_.empty() || !ends_fetches) &&
           (natives_.empty() || !ends_natives);
  }

 private:
  bool end_fetches();
  bool end_natives();
  void end_fetch(std::size_t which, bool copies = true);

  const FabricWeather weather_;
  std::mt19937_64 random_;
  std::vector<SendBuffer*> later_;
  std::vector<Fetch> fetches_;
  std::vector<Native> natives_;
  int descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

class FakeFabricEndpoint final : public MessageEndpoint {
 public:
  FakeFabricEndpoint(FakeFabricContext& context, FakeFabricQueue& queue,
                     const provider::EndpointRequest& request)
      : MessageEndpoint(context, queue, request), own_(queue) {}

  bool path_is_broken = false;
  bool cannot_offer = false;
  bool refuses_pulls = false;
  bool refuses_messages = false;
  int fetched_at_once = 0;
  int large_payloads = 0;
  int taken_small = 0;
  int stopped = 0;
  int withdrawn = 0;
  std::uint64_t taken = 0;
  std::uint64_t heard_of_taken = 0;  // times

  bool refuses_natives = false;
  bool cannot_borrow = false;
  bool natives_unready = false;
  bool natives_break = false;
  int natives_taken = 0;
  int natives_stopped = 0;
  int natives_cut = 0;
  std::map<std::uint32_t, std::byte*> borrowed;
  std::uint64_t natives_awaited = 0;  // calls
  std::uint64_t natives_sent = 0;     // bytes
  std::uint64_t natives_there = 0;

  void can_pull_now() {
    const HelperEntry entry(queue().gate());
    may_be_offered();
  }

  void report_natives() { natives_done(natives_there); }

 protected:
  [[nodiscard]] bool can_write_natively() const noexcept override { return own_.weather().natives; }
  [[nodiscard]] std::size_t lend(const RegionEntry& region, std::span<std::byte> key) noexcept override {
    wire::store(key.data(), region.native);
    return sizeof region.native;
  }
  [[nodiscard]] bool borrow(std::uint32_t slot, std::span<const std::byte> key) noexcept override {
    if (cannot_borrow || key.size() != sizeof(std::byte*)) return false;
    borrowed[slot] = wire::load<std::byte*>(key.data());
    natives_ready(!natives_unready);
    return true;
  }
  void give_up_key(std::uint32_t slot) noexcept override { borrowed.erase(slot); }
  std::ptrdiff_t write_natively(std::uint32_t slot, std::uint64_t offset, const std::byte* from,
                                std::uint64_t length) noexcept override {
    EXPECT_TRUE(borrowed.contains(slot));
    EXPECT_EQ(natives_stopped, 0);
    if (natives_break) return -1;
    if (refuses_natives || own_.chance(own_.weather().refuses)) return 0;
    constexpr std::uint64_t most = 3000;
    const std::uint64_t part = std::min(length, most);
    own_.write_later({this, borrowed[slot] + offset, {from, from + part}});
    natives_sent += part;
    ++natives_taken;
    return static_cast<std::ptrdiff_t>(part);
  }
  void await_natives() noexcept override {
    ++natives_awaited;
    natives_under_way();
  }
  void cut_natives() noexcept override { ++natives_cut; }
  void stop_natives() noexcept override {
    own_.forget_natives(*this);
    ++natives_stopped;
  }
  [[nodiscard]] bool can_pull() const noexcept override { return own_.weather().pulls; }
  void large_payload_passes() noexcept override { ++large_payloads; }
  [[nodiscard]] std::size_t offer(const Piece& memory, std::span<std::byte> token) noexcept override {
    if (cannot_offer) return 0;
    wire::store(token.data(), memory.address);
    return sizeof memory.address;
  }
  void offers_taken(std::uint64_t count) noexcept override {
    taken = count;
    ++heard_of_taken;
  }
  void withdraw_offers() noexcept override { ++withdrawn; }
  [[nodiscard]] Submitted pull(std::uint64_t number, std::span<const std::byte> token, std::uint64_t offset,
                               std::byte* to, std::uint64_t length,
                               std::int32_t& native_code) noexcept override {
    if (path_is_broken || token.size() != sizeof to) {
      native_code = -107;
      return Submitted::broken;
    }
    if (refuses_pulls || own_.chance(own_.weather().refuses)) return Submitted::no_room;
    const std::byte* const from = wire::load<std::byte*>(token.data()) + offset;
    if (own_.chance(own_.weather().pulls_later)) {
      own_.fetch_later({this, number, from, to, length});
      return Submitted::under_way;
    }
    std::memcpy(to, from, length);
    ++fetched_at_once;
    return Submitted::done;
  }
  void stop_pull() noexcept override {
    own_.forget_fetch(*this);
    ++stopped;
  }
  [[nodiscard]] std::vector<std::byte> fabric_blob(const provider::PathAddresses&) override {
    std::vector<std::byte> bytes(sizeof(void*));
    FakeFabricQueue* self = &own_;
    std::memcpy(bytes.data(), &self, sizeof self);
    return bytes;
  }
  bool connect_fabric(std::span<const std::byte> blob, const provider::PeerParameters&) override {
    if (blob.size() != sizeof peer_) throw Error(Status::protocol, "not an address of this fabric");
    std::memcpy(&peer_, blob.data(), sizeof peer_);
    if (own_.weather().mute_paths) ring_for_sleepers();
    return true;
  }
  [[nodiscard]] Submitted submit(SendBuffer& buffer, std::int32_t& native_code) noexcept override {
    if (path_is_broken) {
      native_code = -107;
      return Submitted::broken;
    }
    if (refuses_messages || own_.chance(own_.weather().refuses)) return Submitted::no_room;
    peer_->put(std::span(buffer.bytes, buffer.length));
    if (!buffer.confirmed && !own_.chance(own_.weather().later)) return Submitted::done;
    own_.keep_for_later(buffer);
    return Submitted::under_way;
  }
  [[nodiscard]] Submitted submit_small(const message::Header& header, const iovec& bytes,
                                       std::int32_t& native_code) noexcept override {
    if (!own_.weather().takes_small) return Submitted::no_room;
    EXPECT_LE(sizeof header + bytes.iov_len, own_.message_context().message_options().small_message);
    EXPECT_EQ(own_.buffers_under_way(), 0U) << "it may overtake";
    if (path_is_broken) {
      native_code = -107;
      return Submitted::broken;
    }
    if (refuses_messages || own_.chance(own_.weather().refuses)) return Submitted::no_room;
    std::vector<std::byte> message(sizeof header + bytes.iov_len);
    wire::store(message.data(), header);
    if (bytes.iov_len != 0) std::memcpy(message.data() + sizeof header, bytes.iov_base, bytes.iov_len);
    peer_->put(message);
    ++taken_small;
    return Submitted::done;
  }

 private:
  FakeFabricQueue& own_;
  FakeFabricQueue* peer_ = nullptr;
};

// One at a time; an endpoint hears of it when all of its own are there.
inline bool FakeFabricQueue::end_natives() {
  if (!ends_natives || natives_.empty()) return false;
  const std::size_t which = weather_.mixes_natives
                                ? std::uniform_int_distribution<std::size_t>(0, natives_.size() - 1)(random_)
                                : 0;
  const Native native = std::move(natives_[which]);
  natives_.erase(natives_.begin() + static_cast<std::ptrdiff_t>(which));
  std::memcpy(native.to, native.bytes.data(), native.bytes.size());
  const bool more = std::any_of(natives_.begin(), natives_.end(),
                                [&](const Native& other) { return other.endpoint == native.endpoint; });
  if (!more) {
    native.endpoint->natives_there = native.endpoint->natives_sent;
    native.endpoint->report_natives();
  }
  return true;
}

inline bool FakeFabricQueue::end_fetches() {
  if (!ends_fetches || fetches_.empty()) return false;
  const std::size_t which = weather_.mixes_fetches
                                ? std::uniform_int_distribution<std::size_t>(0, fetches_.size() - 1)(random_)
                                : 0;
  end_fetch(which);
  return true;
}

inline void FakeFabricQueue::end_fetch(std::size_t which, bool copies) {
  const Fetch fetch = fetches_[which];
  fetches_.erase(fetches_.begin() + static_cast<std::ptrdiff_t>(which));
  if (copies) std::memcpy(fetch.to, fetch.from, fetch.length);
  pulled(*fetch.endpoint, fetch.number, fetch.length);
}

inline void FakeFabricQueue::fail_fetches(std::int32_t code) {
  const Entry entry(gate());
  for (const Fetch& fetch : std::exchange(fetches_, {}))
    pull_failed(*fetch.endpoint, code, "the fabric gave up");
}

}  // namespace weft::engine::test
