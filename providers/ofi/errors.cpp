#include "errors.hpp"

#include <rdma/fi_errno.h>

#include "weft/status.hpp"

namespace weft::ofi {

std::string text_of(std::int64_t code) {
  const auto positive = static_cast<int>(code < 0 ? -code : code);
  return std::string(fi_strerror(positive)) + " (libfabric error " + std::to_string(positive) + ")";
}

void check(std::int64_t code, std::string_view what, std::string_view advice) {
  if (code >= 0) return;
  const bool exhausted =
      code == -FI_ENOMEM || code == -FI_EMFILE || code == -FI_ENOSPC || code == -FI_ENOBUFS;
  throw Error(exhausted ? Status::resource_limit : Status::unavailable,
              std::string(what) + ": " + text_of(code) + std::string(advice));
}

}  // namespace weft::ofi
