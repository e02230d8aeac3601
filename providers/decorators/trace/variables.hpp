// The environment variables of trace.
#pragma once

namespace weft::trace {

inline constexpr const char* file_variable = "WEFT_TRACE_FILE";

}  // namespace weft::trace
