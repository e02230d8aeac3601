#include "limits.hpp"

#include <sys/resource.h>

namespace perf::remote {

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  // Without it fewer endpoints are possible; the error then names the limit.
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace perf::remote
