// What a process may have open.
#pragma once

namespace perf::remote {

/// Raises the limit of open descriptors as far as the system lets this process: each endpoint takes one.
void raise_descriptor_limit();

}  // namespace perf::remote
