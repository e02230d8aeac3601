// An endpoint with the smallest limits, which is full now and then.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "decorators/common/book.hpp"
#include "decorators/common/endpoint.hpp"

namespace weft::strict {

class StrictContext;

class StrictEndpoint final : public decorator::Endpoint {
 public:
  // Signalled operations of the send side whose completions the program has not taken.
  using Outstanding = std::atomic<std::uint64_t>;

  StrictEndpoint(StrictContext& context, const provider::EndpointRequest& request);
  ~StrictEndpoint() override;

  [[nodiscard]] Limits limits() const noexcept override;
  PostResult post(const WorkRequest* requests, std::size_t count) noexcept override;
  PostResult post_receives(const ReceiveRequest* requests, std::size_t count) noexcept override;
  [[nodiscard]] Imported import_key(std::span<const std::byte> key) override;
  void release_key(std::uint64_t token) noexcept override;

 private:
  [[nodiscard]] Status refusal(const WorkRequest& request) const noexcept;
  [[nodiscard]] bool is_full_now(const WorkRequest& request) const noexcept;
  [[nodiscard]] bool is_plainly_good(const WorkRequest& request) const;

  StrictContext& context_;
  const std::shared_ptr<Outstanding> outstanding_;
  decorator::KeyBook keys_;
};

}  // namespace weft::strict
