// trace: writes a readable line for every call into the provider beneath and every completion out of it.
// ../README.md describes the lines.
#include <string>

#include "decorators/common/context.hpp"
#include "decorators/common/provider.hpp"
#include "decorators/common/text.hpp"
#include "log.hpp"
#include "variables.hpp"

namespace weft::trace {
namespace {

using decorator::to_text;
using decorator::total_length;

std::string answer(const PostResult& result, std::size_t index) {
  if (index < result.accepted) return "ok";
  if (index == result.accepted) return std::string(to_string(result.status));
  return "not looked at";
}

void note_receives(Log& log, const std::string& who, const ReceiveRequest* requests, std::size_t count,
                   const PostResult& result) {
  for (std::size_t i = 0; i < count; ++i) {
    log.line("{} post_receives {}/{} context={:#x} bytes={} segments={} -> {}", who, i + 1, count,
             requests[i].context, total_length(requests[i].segments), requests[i].segments.size(),
             answer(result, i));
  }
}

class TraceQueue final : public decorator::CompletionQueue {
 public:
  TraceQueue(Log& log, std::uint32_t number, std::uint32_t capacity, provider::QueueEvents& events)
      : decorator::CompletionQueue(events), log_(log), number_(number) {
    if (log_.on()) log_.line("queue {} made, capacity={}", number_, capacity);
  }

  std::size_t poll(Completion* out, std::size_t room) noexcept override {
    const std::size_t count = inner().poll(out, room);
    if (count == 0 || !log_.on()) [[likely]]
      return count;
    for (std::size_t i = 0; i < count; ++i) note(out[i]);
    return count;
  }
  [[nodiscard]] bool arm() noexcept override {
    const bool armed = inner().arm();
    if (log_.on()) log_.line("queue {} arm -> {}", number_, armed);
    return armed;
  }

 private:
  void note(const Completion& entry) noexcept {
    try {
      log_.line("queue {} completion {} {} endpoint={} context={:#x} bytes={}{}{}", number_,
                to_string(entry.operation), to_string(entry.status), entry.endpoint_id, entry.context,
                entry.bytes, entry.has_immediate ? fmt::format(" immediate={:#x}", entry.immediate) : "",
                entry.native_code != 0 ? fmt::format(" native_code={}", entry.native_code) : "");
    } catch (const std::bad_alloc&) {  // as Log::line
    }
  }

  Log& log_;
  const std::uint32_t number_;
};

class TraceReceiveQueue final : public decorator::ReceiveQueue {
 public:
  TraceReceiveQueue(Log& log, std::uint32_t number)
      : log_(log), name_(fmt::format("receive queue {}", number)) {}

  PostResult post(const ReceiveRequest* requests, std::size_t count) noexcept override {
    const PostResult result = inner().post(requests, count);
    if (log_.on()) note_receives(log_, name_, requests, count, result);
    return result;
  }

 private:
  Log& log_;
  const std::string name_;
};

class TraceRegion final : public decorator::MemoryRegion {
 public:
  TraceRegion(Log& log, const RegistrationRequest& request) : log_(log) {
    if (log_.on()) {
      log_.line("register {} bytes at {} for {}", request.length, request.address, to_text(request.access));
    }
  }

  Status deregister() noexcept override {
    const Status status = inner().deregister();
    if (log_.on()) log_.line("region {:#x} deregister -> {}", token(), to_string(status));
    return status;
  }

 private:
  Log& log_;
};

class TraceEndpoint final : public decorator::Endpoint {
 public:
  TraceEndpoint(Log& log, const provider::EndpointRequest& request)
      : decorator::Endpoint(request), log_(log), name_(fmt::format("endpoint {}", request.id)) {
    if (log_.on()) {
      log_.line("{} made, send_depth={} receive_depth={} max_inline={}{}", name_, request.send_depth,
                request.receive_depth, request.max_inline,
                request.shared_receives != nullptr ? " shared receives" : "");
    }
  }

  void go_up() noexcept override {
    if (log_.on()) log_.line("{} goes up", name_);
    inner().go_up();
  }
  PostResult post(const WorkRequest* requests, std::size_t count) noexcept override {
    const PostResult result = inner().post(requests, count);
    if (!log_.on()) [[likely]]
      return result;
    for (std::size_t i = 0; i < count; ++i) note(requests[i], i, count, result);
    return result;
  }
  PostResult post_receives(const ReceiveRequest* requests, std::size_t count) noexcept override {
    const PostResult result = inner().post_receives(requests, count);
    if (log_.on()) note_receives(log_, name_, requests, count, result);
    return result;
  }
  [[nodiscard]] Imported import_key(std::span<const std::byte> key) override {
    const Imported imported = inner().import_key(key);
    if (log_.on()) {
      log_.line("{} import_key -> memory={:#x} bytes={} for {}", name_, imported.token, imported.length,
                to_text(imported.access));
    }
    return imported;
  }
  void drain() noexcept override {
    if (log_.on()) log_.line("{} close", name_);
    inner().drain();
  }
  void end(const provider::EndOrder& order) noexcept override {
    if (log_.on()) {
      log_.line("{} end {}{}", name_, to_string(order.cause),
                order.after_messages ? " after all messages" : "");
    }
    inner().end(order);
  }

 private:
  void note(const WorkRequest& request, std::size_t index, std::size_t count,
            const PostResult& result) noexcept {
    try {
      const bool remote = request.operation != Operation::send && request.operation != Operation::flush;
      log_.line(
          "{} post {}/{} {} context={:#x} bytes={} segments={} flags={}{}{} -> {}", name_, index + 1, count,
          to_string(request.operation), request.context, total_length(request.segments),
          request.segments.size(), to_text(request.flags),
          remote ? fmt::format(" memory={:#x} offset={}", request.remote.memory, request.remote.offset) : "",
          has(request.flags, Flags::with_immediate) || request.operation == Operation::write_with_immediate
              ? fmt::format(" immediate={:#x}", request.immediate)
              : "",
          answer(result, index));
    } catch (const std::bad_alloc&) {  // as Log::line
    }
  }

  Log& log_;
  const std::string name_;
};

class TraceContext final : public decorator::Context {
 public:
  TraceContext(provider::Host& host, std::unique_ptr<provider::Context> inner)
      : decorator::Context(std::move(inner)), log_(host) {
    if (log_.on()) log_.line("context opened over {}", attributes_.provider);
  }

  void enter_child() noexcept override {
    log_.silence();
    decorator::Context::enter_child();
  }

 protected:
  [[nodiscard]] std::unique_ptr<decorator::CompletionQueue> make_queue(
      std::uint32_t capacity, provider::QueueEvents& events) override {
    return std::make_unique<TraceQueue>(log_, ++last_number_, capacity, events);
  }
  [[nodiscard]] std::unique_ptr<decorator::ReceiveQueue> make_receive_queue(
      decorator::CompletionQueue& /*queue*/, std::uint32_t /*depth*/) override {
    return std::make_unique<TraceReceiveQueue>(log_, ++last_number_);
  }
  [[nodiscard]] std::unique_ptr<decorator::MemoryRegion> make_region(
      const RegistrationRequest& request) override {
    return std::make_unique<TraceRegion>(log_, request);
  }
  [[nodiscard]] std::unique_ptr<decorator::Endpoint> make_endpoint(
      const provider::EndpointRequest& request) override {
    return std::make_unique<TraceEndpoint>(log_, request);
  }

 private:
  Log log_;
  std::atomic<std::uint32_t> last_number_{0};
};

class TraceProvider final : public decorator::Provider {
 public:
  TraceProvider() : decorator::Provider("trace") {}

  [[nodiscard]] std::vector<provider::Variable> variables() const override {
    return {{file_variable, "",
             "file the lines of trace are appended to, %p standing for the process id; unset: weft's log, at "
             "level "
             "trace"}};
  }
  [[nodiscard]] std::unique_ptr<provider::Context> open(provider::Host& host,
                                                        const provider::OpenRequest& request,
                                                        std::unique_ptr<provider::Context> inner) override {
    expect_plain_name(request);
    return std::make_unique<TraceContext>(host, std::move(inner));
  }
};

provider::Provider* instance() {
  static auto* const provider = new TraceProvider;  // never destroyed
  return provider;
}

}  // namespace
}  // namespace weft::trace

WEFT_EXPORT_PROVIDER("trace", "0.1.0", weft::trace::instance)
