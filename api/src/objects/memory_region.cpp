#include "weft/memory_region.hpp"

#include "objects/region_handle.hpp"

namespace weft {

namespace {

core::RegionHandle& checked(const std::shared_ptr<core::RegionHandle>& handle, const char* what) {
  if (handle == nullptr) {
    throw Error(Status::invalid_argument,
                std::string("cannot ") + what + ": this MemoryRegion names no region");
  }
  return *handle;
}

}  // namespace

Segment MemoryRegion::checked_slice(std::uint64_t offset, std::uint64_t length) const {
  if (offset > length_ || length > length_ - offset) {
    throw Error(Status::invalid_argument, "the piece of " + std::to_string(length) + " bytes at offset " +
                                              std::to_string(offset) + " does not lie inside the region of " +
                                              std::to_string(length_) + " bytes");
  }
  return slice(offset, length);
}

std::span<const std::byte> MemoryRegion::key() const {
  core::RegionHandle& handle = checked(handle_, "tell the key");
  handle.context().check_usable("tell a region's key");
  if (!handle.is_registered())
    throw Error(Status::invalid_argument, "the region is deregistered and has no key");
  return handle.provider().key();
}

Access MemoryRegion::access() const { return checked(handle_, "tell the access").access(); }

AtomicScope MemoryRegion::atomic_scope() const {
  return checked(handle_, "tell the atomic scope").provider().atomic_scope();
}

Status MemoryRegion::deregister() {
  core::RegionHandle& handle = checked(handle_, "deregister");
  return handle.context().is_inert() ? Status::not_connected : handle.deregister();
}

MemoryRegion::operator bool() const noexcept { return handle_ != nullptr && handle_->is_registered(); }

}  // namespace weft
