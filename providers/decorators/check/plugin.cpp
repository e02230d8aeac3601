// check: watches how a program uses weft and says what it does wrong. ../README.md lists it all.
#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decorators/common/booked_region.hpp"
#include "decorators/common/context.hpp"
#include "decorators/common/provider.hpp"
#include "decorators/common/text.hpp"
#include "poison.hpp"
#include "watch.hpp"

namespace weft::check {
namespace {

constexpr const char* action_variable = "WEFT_CHECK_ACTION";
constexpr const char* poison_variable = "WEFT_CHECK_POISON";

struct Settings {
  bool aborts = false;
  bool poisons = false;
};

// The parts that posts of the send side and of receives share.
class Poster {
 public:
  Poster(const decorator::Context& context, Watch& watch, bool poisons)
      : context_(context), watch_(watch), poisons_(poisons) {}

  [[nodiscard]] Watch& watch() noexcept { return watch_; }
  [[nodiscard]] bool inert() const noexcept { return context_.inert(); }

  // Nobody takes a completion before its operation is noted: the lock is held. `explain` says what is wrong
  // with the peer's part of a refused request.
  template <class Request, class Forward, class Explain>
  PostResult post(const Request* requests, std::size_t count, OpenList& list, const std::string& owner,
                  Forward&& forward, Explain&& explain) {
    const Watch::Caller caller(watch_);
    const std::lock_guard lock(watch_.mutex());
    std::vector<Open> opened;
    for (std::size_t i = 0; i < count; ++i) {
      opened.push_back(watch_.opened(requests[i], owner));
    }
    std::vector<Poison> poisons(count);
    for (std::size_t i = count; poisons_ && i-- > 0;) poisons[i].fill(opened[i]);
    const PostResult result = forward(requests, count);
    for (std::size_t i = result.accepted; i < count; ++i) poisons[i].undo();
    for (std::size_t i = 0; i < result.accepted; ++i) watch_.accept(list, std::move(opened[i]));
    if (result.accepted < count) {
      const Request& refused = requests[result.accepted];
      watch_.refuse(opened[result.accepted], refused.segments, result.status,
                    result.status == Status::invalid_argument ? explain(refused) : std::string());
    }
    return result;
  }

 private:
  const decorator::Context& context_;
  Watch& watch_;
  const bool poisons_;
};

std::string nothing(const ReceiveRequest& /*request*/) { return {}; }

class CheckQueue final : public decorator::CompletionQueue {
 public:
  CheckQueue(const decorator::Context& context, Watch& watch, provider::QueueEvents& events)
      : decorator::CompletionQueue(events), context_(context), watch_(watch) {}

  std::size_t poll(Completion* out, std::size_t room) noexcept override {
    if (context_.inert()) return inner().poll(out, room);
    const Watch::Caller caller(watch_);
    const std::lock_guard lock(watch_.mutex());
    const std::size_t count = inner().poll(out, room);
    for (std::size_t i = 0; i < count; ++i) {
      try {
        watch_.taken(out[i]);
      } catch (const std::bad_alloc&) {  // no memory for the text of a finding
      }
    }
    return count;
  }

 private:
  const decorator::Context& context_;
  Watch& watch_;
};

class CheckReceiveQueue final : public decorator::ReceiveQueue {
 public:
  CheckReceiveQueue(Poster poster, std::uint32_t number)
      : poster_(poster), name_(fmt::format("receive queue {}", number)) {}
  ~CheckReceiveQueue() override {
    if (poster_.inert()) return;
    const std::lock_guard lock(poster_.watch().mutex());
    poster_.watch().drop(list_);
  }

  PostResult post(const ReceiveRequest* requests, std::size_t count) noexcept override {
    if (poster_.inert()) return inner().post(requests, count);
    return poster_.post(
        requests, count, list_, name_,
        [&](const ReceiveRequest* all, std::size_t n) { return inner().post(all, n); }, nothing);
  }
  [[nodiscard]] OpenList& list() noexcept { return list_; }

 private:
  Poster poster_;
  const std::string name_;
  OpenList list_;
};

class CheckRegion final : public decorator::BookedRegion {
 public:
  CheckRegion(Watch& watch, const RegistrationRequest& request)
      : decorator::BookedRegion(watch.regions(), request), watch_(watch) {}

  Status deregister() noexcept override {
    const Status status = decorator::BookedRegion::deregister();
    if (status != Status::ok) return status;
    const std::lock_guard lock(watch_.mutex());
    watch_.forget_region(token());
    return status;
  }

 private:
  Watch& watch_;
};

class CheckEndpoint final : public decorator::Endpoint {
 public:
  CheckEndpoint(Poster poster, const provider::EndpointRequest& request)
      : decorator::Endpoint(request), poster_(poster), name_(fmt::format("endpoint {}", request.id)) {
    if (request.shared_receives != nullptr) {
      book_.shared = &static_cast<CheckReceiveQueue*>(request.shared_receives)->list();
    }
    const std::lock_guard lock(poster_.watch().mutex());
    poster_.watch().add_endpoint(id(), book_);
  }
  ~CheckEndpoint() override {
    if (poster_.inert()) return;
    const std::lock_guard lock(poster_.watch().mutex());
    poster_.watch().drop(book_.sends);
    poster_.watch().drop(book_.receives);
    poster_.watch().remove_endpoint(id());
  }

  PostResult post(const WorkRequest* requests, std::size_t count) noexcept override {
    if (poster_.inert()) return inner().post(requests, count);
    return poster_.post(
        requests, count, book_.sends, name_,
        [&](const WorkRequest* all, std::size_t n) { return inner().post(all, n); },
        [&](const WorkRequest& request) { return remote_reason(request); });
  }
  PostResult post_receives(const ReceiveRequest* requests, std::size_t count) noexcept override {
    if (poster_.inert()) return inner().post_receives(requests, count);
    return poster_.post(
        requests, count, book_.receives, name_,
        [&](const ReceiveRequest* all, std::size_t n) { return inner().post_receives(all, n); }, nothing);
  }
  [[nodiscard]] Imported import_key(std::span<const std::byte> key) override {
    const Imported imported = inner().import_key(key);
    keys_.add(imported.token, {imported.length, imported.access});
    return imported;
  }
  void release_key(std::uint64_t token) noexcept override {
    keys_.remove(token);
    inner().release_key(token);
  }
  void silence() noexcept override {
    {
      const std::lock_guard lock(poster_.watch().mutex());
      note_unread();
      poster_.watch().drop(book_.sends);
      poster_.watch().drop(book_.receives);
    }
    inner().silence();
  }

 private:
  [[nodiscard]] std::string remote_reason(const WorkRequest& request) const {
    if (request.operation == Operation::send || request.operation == Operation::flush) return {};
    const auto key = keys_.find(request.remote.memory);
    if (!key) return "the remote memory was not imported on this endpoint, or its handle is gone";
    const std::uint64_t length = decorator::total_length(request.segments);
    if (!decorator::lies_inside(request.remote.offset, length, key->length)) {
      return fmt::format("{} bytes at offset {} do not lie in the remote region of {} bytes", length,
                         request.remote.offset, key->length);
    }
    return fmt::format("the remote region grants {}", decorator::to_text(key->access));
  }
  void note_unread() noexcept {
    std::size_t count = 0;
    const Open* first = nullptr;
    for (const Open& open : book_.sends) {
      if (!open.signalled) continue;
      if (first == nullptr) first = &open;
      ++count;
    }
    if (count == 0) return;
    try {
      poster_.watch().findings().add(
          Misuse::left_unread,
          fmt::format(
              "the last handle of {} went while {} completions of its send side had not been taken, the "
              "first of them {}: whether these operations worked is not known",
              name_, count, first->text()));
    } catch (const std::bad_alloc&) {  // no memory for the text
    }
  }

  Poster poster_;
  const std::string name_;
  EndpointBook book_;
  decorator::KeyBook keys_;
};

class CheckContext final : public decorator::Context {
 public:
  CheckContext(provider::Host& host, const provider::OpenRequest& request, Settings settings,
               std::unique_ptr<provider::Context> inner)
      : decorator::Context(std::move(inner)),
        settings_(settings),
        findings_(host, settings.aborts),
        watch_(findings_, request.thread_mode) {}

  [[nodiscard]] std::vector<Counter> counters() const override {
    auto counters = decorator::Context::counters();
    const auto more = findings_.counters();
    counters.insert(counters.end(), more.begin(), more.end());
    return counters;
  }

 protected:
  [[nodiscard]] std::unique_ptr<decorator::CompletionQueue> make_queue(
      std::uint32_t /*capacity*/, provider::QueueEvents& events) override {
    return std::make_unique<CheckQueue>(*this, watch_, events);
  }
  [[nodiscard]] std::unique_ptr<decorator::ReceiveQueue> make_receive_queue(
      decorator::CompletionQueue& /*queue*/, std::uint32_t /*depth*/) override {
    return std::make_unique<CheckReceiveQueue>(poster(), ++last_number_);
  }
  [[nodiscard]] std::unique_ptr<decorator::MemoryRegion> make_region(
      const RegistrationRequest& request) override {
    return std::make_unique<CheckRegion>(watch_, request);
  }
  [[nodiscard]] std::unique_ptr<decorator::Endpoint> make_endpoint(
      const provider::EndpointRequest& request) override {
    return std::make_unique<CheckEndpoint>(poster(), request);
  }

 private:
  [[nodiscard]] Poster poster() noexcept { return {*this, watch_, settings_.poisons}; }

  const Settings settings_;
  Findings findings_;
  Watch watch_;
  std::atomic<std::uint32_t> last_number_{0};
};

class CheckProvider final : public decorator::Provider {
 public:
  CheckProvider() : decorator::Provider("check") {}

  [[nodiscard]] std::vector<provider::Variable> variables() const override {
    return {
        {action_variable, "report", "what check does with a finding: report (a warning in the log) or abort"},
        {poison_variable, "0",
         "1: memory that receives and reads will fill is filled with 0xCB when they are posted, so that "
         "reading "
         "it too early shows"}};
  }
  [[nodiscard]] std::unique_ptr<provider::Context> open(provider::Host& host,
                                                        const provider::OpenRequest& request,
                                                        std::unique_ptr<provider::Context> inner) override {
    expect_plain_name(request);
    const Settings settings{.aborts = choice(host, action_variable, "report", "abort"),
                            .poisons = choice(host, poison_variable, "0", "1")};
    return std::make_unique<CheckContext>(host, request, settings, std::move(inner));
  }

 private:
  [[nodiscard]] static bool choice(const provider::Host& host, const char* variable, std::string_view usual,
                                   std::string_view other) {
    const auto value = host.variable(variable);
    if (!value || *value == usual) return false;
    if (*value == other) return true;
    throw Error(Status::invalid_argument,
                fmt::format("the environment variable {} is \"{}\"; allowed: {} or {}", variable, *value,
                            usual, other));
  }
};

provider::Provider* instance() {
  static auto* const provider = new CheckProvider;  // never destroyed
  return provider;
}

}  // namespace
}  // namespace weft::check

WEFT_EXPORT_PROVIDER("check", "0.1.0", weft::check::instance)
