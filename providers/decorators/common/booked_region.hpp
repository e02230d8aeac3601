// A region that stands in the context's book while it is registered.
#pragma once

#include <memory>
#include <utility>

#include "decorators/common/book.hpp"
#include "decorators/common/objects.hpp"
#include "weft/memory_region.hpp"

namespace weft::decorator {

class BookedRegion : public MemoryRegion {
 public:
  BookedRegion(RegionBook& book, const RegistrationRequest& request)
      : book_(book), facts_{static_cast<std::byte*>(request.address), request.length, request.access} {}

  void wrap(std::unique_ptr<provider::MemoryRegion> inner) override {
    MemoryRegion::wrap(std::move(inner));
    book_.add(token(), facts_);
  }
  Status deregister() noexcept override {
    const Status status = MemoryRegion::deregister();
    if (status == Status::ok) book_.remove(token());
    return status;
  }

 private:
  RegionBook& book_;
  const RegionFacts facts_;
};

}  // namespace weft::decorator
