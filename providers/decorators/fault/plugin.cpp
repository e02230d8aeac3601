// fault: lets go wrong what WEFT_FAULT_PLAN says, so that a program's ways out of trouble can be tried.
// ../README.md describes the plan.
#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "decorators/common/context.hpp"
#include "decorators/common/provider.hpp"
#include "plan.hpp"

namespace weft::fault {
namespace {

constexpr const char* plan_variable = "WEFT_FAULT_PLAN";

class FaultContext;

class FaultQueue final : public decorator::CompletionQueue {
 public:
  FaultQueue(Plan& plan, provider::QueueEvents& events) : decorator::CompletionQueue(events), plan_(plan) {}

  std::size_t poll(Completion* out, std::size_t room) noexcept override {
    if (!plan_.has(Event::delay)) return inner().poll(out, room);
    const auto now = Clock::now().time_since_epoch().count();
    // What is late stays in the queue beneath and keeps its room there.
    if (now < not_before_.load(std::memory_order_relaxed)) return inner().poll(out, 0);
    const std::size_t count = inner().poll(out, room < 1 ? 0 : 1);
    if (count != 0 && plan_.strikes(Event::delay)) {
      not_before_.store(now + Clock::duration(plan_.delay()).count(), std::memory_order_relaxed);
    }
    return count;
  }

 private:
  using Clock = std::chrono::steady_clock;

  Plan& plan_;
  std::atomic<Clock::rep> not_before_{0};
};

class FaultReceiveQueue final : public decorator::ReceiveQueue {
 public:
  explicit FaultReceiveQueue(Plan& plan) : plan_(plan) {}

  PostResult post(const ReceiveRequest* requests, std::size_t count) noexcept override {
    if (plan_.strikes(Event::again_receive)) return {Status::again, 0};
    return inner().post(requests, count);
  }

 private:
  Plan& plan_;
};

class FaultEndpoint final : public decorator::Endpoint {
 public:
  FaultEndpoint(Plan& plan, provider::Host& host, const provider::EndpointRequest& request)
      : decorator::Endpoint(request), plan_(plan), host_(host) {}

  bool establish(const provider::PeerParameters& peer) override {
    if (plan_.strikes(Event::refuse)) throw Error(Status::refused, "the fault plan refuses this connection");
    return inner().establish(peer);
  }

  PostResult post(const WorkRequest* requests, std::size_t count) noexcept override {
    // What has ended stays so, whatever the plan says.
    const auto can_strike = [this] { return inner().post(nullptr, 0).status == Status::ok; };
    if (plan_.has(Event::again) && can_strike() && plan_.strikes(Event::again)) return {Status::again, 0};
    const PostResult result = inner().post(requests, count);
    if (result.accepted != 0 && plan_.strikes(Event::end)) end_by_plan();
    return result;
  }

  PostResult post_receives(const ReceiveRequest* requests, std::size_t count) noexcept override {
    if (plan_.strikes(Event::again_receive)) {
      const PostResult asked = inner().post_receives(nullptr, 0);
      return asked.status == Status::ok ? PostResult{Status::again, 0} : asked;
    }
    return inner().post_receives(requests, count);
  }

  // The cause is told once, whoever finds it first.
  void failed(Status cause, std::uint64_t detail, std::int32_t native_code,
              std::string_view text) noexcept override {
    if (!failed_.exchange(true)) events().failed(cause, detail, native_code, text);
  }

 private:
  void end_by_plan() noexcept {
    if (failed_.exchange(true)) return;
    host_.log(LogLevel::info, "the fault plan ends endpoint " + std::to_string(id()));
    events().failed(plan_.cause(), 0, 0, "ended by the fault plan");
  }

  Plan& plan_;
  provider::Host& host_;
  std::atomic<bool> failed_{false};
};

class FaultContext final : public decorator::Context {
 public:
  FaultContext(provider::Host& host, const std::string& plan, std::unique_ptr<provider::Context> inner)
      : decorator::Context(std::move(inner)), host_(host), plan_(plan) {}

  [[nodiscard]] std::vector<Counter> counters() const override {
    auto counters = decorator::Context::counters();
    counters.push_back({"faults", plan_.struck()});
    return counters;
  }

 protected:
  [[nodiscard]] std::unique_ptr<decorator::CompletionQueue> make_queue(
      std::uint32_t /*capacity*/, provider::QueueEvents& events) override {
    return std::make_unique<FaultQueue>(plan_, events);
  }
  [[nodiscard]] std::unique_ptr<decorator::ReceiveQueue> make_receive_queue(
      decorator::CompletionQueue& /*queue*/, std::uint32_t /*depth*/) override {
    return std::make_unique<FaultReceiveQueue>(plan_);
  }
  [[nodiscard]] std::unique_ptr<decorator::MemoryRegion> make_region(
      const RegistrationRequest& request) override {
    if (plan_.strikes(Event::register_memory)) {
      throw Error(Status::resource_limit, "cannot register " + std::to_string(request.length) +
                                              " bytes: the fault plan lets this registration fail");
    }
    return decorator::Context::make_region(request);
  }
  [[nodiscard]] std::unique_ptr<decorator::Endpoint> make_endpoint(
      const provider::EndpointRequest& request) override {
    return std::make_unique<FaultEndpoint>(plan_, host_, request);
  }

 private:
  provider::Host& host_;
  Plan plan_;
};

class FaultProvider final : public decorator::Provider {
 public:
  FaultProvider() : decorator::Provider("fault") {}

  [[nodiscard]] std::vector<provider::Variable> variables() const override {
    return {{plan_variable, "",
             "what goes wrong and when, for instance again@10%;register@#3;end=peer_lost@#100;seed=7; unset "
             "or empty: "
             "nothing"}};
  }
  [[nodiscard]] std::unique_ptr<provider::Context> open(provider::Host& host,
                                                        const provider::OpenRequest& request,
                                                        std::unique_ptr<provider::Context> inner) override {
    expect_plain_name(request);
    return std::make_unique<FaultContext>(host, host.variable(plan_variable).value_or(""), std::move(inner));
  }
};

provider::Provider* instance() {
  static auto* const provider = new FaultProvider;  // never destroyed
  return provider;
}

}  // namespace
}  // namespace weft::fault

WEFT_EXPORT_PROVIDER("fault", "0.1.0", weft::fault::instance)
