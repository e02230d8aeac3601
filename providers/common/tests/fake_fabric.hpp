// A message fabric in memory, which reorders, holds back, repeats, refuses and fails at will (by seed).
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>
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
  bool mute_paths = false;         // it has one, which tells nothing of what these endpoints' peers send
  std::uint64_t seed = 1;
};

class FakeFabricContext final : public MessageContext {
 public:
  FakeFabricContext(provider::Host& host, const provider::OpenRequest& request, const EngineOptions& options,
                    const MessageOptions& message_options)
      : MessageContext(host, request, options, message_options) {}
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
    return inbox.empty() && later_.empty() && (fetches_.empty() || !ends_fetches);
  }

 private:
  bool end_fetches();
  void end_fetch(std::size_t which, bool copies = true);

  const FabricWeather weather_;
  std::mt19937_64 random_;
  std::vector<SendBuffer*> later_;
  std::vector<Fetch> fetches_;
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

  void can_pull_now() {
    const HelperEntry entry(queue().gate());
    may_be_offered();
  }

 protected:
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
