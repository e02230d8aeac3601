// mutant:NAME+tcp: a provider that breaks one rule on purpose, so that the suite can be seen to find it.
#include "decorators/common/provider.hpp"
#include "mutant.hpp"

namespace mutants {

namespace {

class Context final : public weft::decorator::Context {
 public:
  Context(std::unique_ptr<Behaviour> behaviour, const provider::OpenRequest& request,
          std::unique_ptr<provider::Context> inner)
      : weft::decorator::Context(std::move(inner)), behaviour_(std::move(behaviour)) {
    behaviour_->open(this->inner(), request);
    behaviour_->attributes(attributes_);
  }

  Clock::time_point service(Clock::time_point now) noexcept override {
    return behaviour_->service(inner(), now);
  }
  [[nodiscard]] std::unique_ptr<provider::CompletionQueue> create_completion_queue(
      std::uint32_t capacity, provider::QueueEvents& events) override {
    return weft::decorator::Context::create_completion_queue(behaviour_->capacity(capacity), events);
  }
  [[nodiscard]] std::unique_ptr<provider::MemoryRegion> register_memory(
      const weft::RegistrationRequest& request) override {
    weft::RegistrationRequest changed = request;
    behaviour_->registering(changed);
    return weft::decorator::Context::register_memory(changed);
  }

 protected:
  [[nodiscard]] std::unique_ptr<weft::decorator::CompletionQueue> make_queue(
      std::uint32_t /*capacity*/, provider::QueueEvents& events) override {
    return std::make_unique<Queue>(*behaviour_, events);
  }
  [[nodiscard]] std::unique_ptr<weft::decorator::ReceiveQueue> make_receive_queue(
      weft::decorator::CompletionQueue& /*queue*/, std::uint32_t depth) override {
    return std::make_unique<Receives>(*behaviour_, depth);
  }
  [[nodiscard]] std::unique_ptr<weft::decorator::MemoryRegion> make_region(
      const weft::RegistrationRequest& request) override {
    return std::make_unique<Region>(*behaviour_, request);
  }
  [[nodiscard]] std::unique_ptr<weft::decorator::Endpoint> make_endpoint(
      const provider::EndpointRequest& request) override {
    return std::make_unique<Endpoint>(*behaviour_, request);
  }

 private:
  const std::unique_ptr<Behaviour> behaviour_;
};

class MutantProvider final : public weft::decorator::Provider {
 public:
  MutantProvider() : weft::decorator::Provider("mutant:NAME") {}
  [[nodiscard]] std::unique_ptr<provider::Context> open(provider::Host& /*host*/,
                                                        const provider::OpenRequest& request,
                                                        std::unique_ptr<provider::Context> inner) override {
    for (const Mutant& mutant : all_mutants()) {
      if (mutant.name != request.beneath) continue;
      auto behaviour = mutant.make();
      behaviour->set_rarity(mutant.one_in);
      return std::make_unique<Context>(std::move(behaviour), request, std::move(inner));
    }
    throw weft::Error(Status::not_found, "there is no mutant called " + std::string(request.beneath));
  }
};

provider::Provider* instance() {
  static auto* const provider = new MutantProvider;  // never destroyed
  return provider;
}

}  // namespace
}  // namespace mutants

WEFT_EXPORT_PROVIDER("mutant", "0.1.0", mutants::instance)
