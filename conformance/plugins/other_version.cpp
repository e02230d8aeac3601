// A plug-in built against another version of the provider interface: it must be refused before it is called
// (SEL-6).
#include <cstdint>
#include <cstdlib>

#include "weft/provider/plugin.hpp"

extern "C" __attribute__((visibility("default"))) const std::uint32_t weft_provider_interface_version =
    weft::provider::interface_version + 1000;

extern "C" __attribute__((visibility("default"))) const weft::provider::PluginDescriptor* weft_provider_v1() {
  std::abort();  // whoever calls this has not looked at the version
}
