// A plug-in whose library is missing on this machine.
#include "weft/provider/plugin.hpp"

extern "C" int function_of_the_absent_library();

namespace {
weft::provider::Provider* the_provider() {
  return function_of_the_absent_library() == 0 ? reinterpret_cast<weft::provider::Provider*>(1) : nullptr;
}
}  // namespace

WEFT_EXPORT_PROVIDER("needy", "1", the_provider)
