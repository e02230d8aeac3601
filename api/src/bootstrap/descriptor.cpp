#include "bootstrap/descriptor.hpp"

namespace weft::core {

DescriptorTable& DescriptorTable::instance() {
  static auto* const table =
      new DescriptorTable;  // never destroyed: static destructors close descriptors too
  return *table;
}

void DescriptorTable::close_all_in_child() noexcept {
  for (const int descriptor : open_) ::close(descriptor);
  stale_ = true;
  ++generation_;
}

}  // namespace weft::core
