// A context as hard on programs as the contract allows.
#pragma once

#include <cstdint>
#include <memory>

#include "decorators/common/book.hpp"
#include "decorators/common/context.hpp"
#include "dice.hpp"
#include "endpoint.hpp"

namespace weft::strict {

class StrictContext final : public decorator::Context {
 public:
  StrictContext(std::unique_ptr<provider::Context> inner, std::uint64_t seed);

  [[nodiscard]] Dice& dice() noexcept { return dice_; }
  [[nodiscard]] decorator::RegionBook& regions() noexcept { return regions_; }
  using EndpointBook = decorator::Book<std::uint32_t, std::shared_ptr<StrictEndpoint::Outstanding>>;
  [[nodiscard]] EndpointBook& endpoints() noexcept { return endpoints_; }
  // The program took an entry.
  void taken(const Completion& entry) noexcept;

 protected:
  [[nodiscard]] std::unique_ptr<decorator::CompletionQueue> make_queue(
      std::uint32_t capacity, provider::QueueEvents& events) override;
  [[nodiscard]] std::unique_ptr<decorator::ReceiveQueue> make_receive_queue(decorator::CompletionQueue& queue,
                                                                            std::uint32_t depth) override;
  [[nodiscard]] std::unique_ptr<decorator::MemoryRegion> make_region(
      const RegistrationRequest& request) override;
  [[nodiscard]] std::unique_ptr<decorator::Endpoint> make_endpoint(
      const provider::EndpointRequest& request) override;

 private:
  Dice dice_;
  decorator::RegionBook regions_;
  EndpointBook endpoints_;
};

}  // namespace weft::strict
