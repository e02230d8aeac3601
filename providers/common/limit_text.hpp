// Words for errors that come of a limit of the process: which limit, and its value (MEM-6).
#pragma once

#include <string>

namespace weft::engine {

// "Too many open files: the process may have 1024 descriptors (RLIMIT_NOFILE); raise it with ulimit -n, or
// close some"; the second part only for the two codes that mean a limit.
[[nodiscard]] std::string descriptor_error_text(int error_number);

}  // namespace weft::engine
