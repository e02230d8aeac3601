// A plug-in whose descriptor has one fault, chosen by WEFT_FAULT.
#include "weft/provider/plugin.hpp"

namespace {
weft::provider::Provider* the_provider() { return nullptr; }
}  // namespace

#if WEFT_FAULT == 1  // the name is not that of the file
WEFT_EXPORT_PROVIDER("somebody-else", "1", the_provider)
#elif WEFT_FAULT == 2  // no provider object
WEFT_EXPORT_PROVIDER("empty", "1", the_provider)
#else                  // not weft's magic number
extern "C" __attribute__((visibility("default"))) const std::uint32_t weft_provider_interface_version =
    weft::provider::interface_version;
extern "C" __attribute__((visibility("default"))) const weft::provider::PluginDescriptor* weft_provider_v1() {
  static const weft::provider::PluginDescriptor descriptor{
      .magic = 1, .name = "broken", .version_text = "1", .instance = the_provider};
  return &descriptor;
}
#endif
