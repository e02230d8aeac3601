// The entry of a plug-in: what the core looks up in a shared object before anything else.
//
// A plug-in exports two C symbols, best by WEFT_EXPORT_PROVIDER once in one source file:
//   weft_provider_interface_version   const uint32_t; read first, so that a plug-in built against another
//   version is
//                                     refused with one sentence that names both, and never called (SEL-6)
//   weft_provider_v1                  returns the descriptor
// Everything else in a plug-in should be hidden. A loaded plug-in is never unloaded.
#pragma once

#include <cstdint>

namespace weft::provider {

class Provider;

// Raised whenever anything under weft/provider/ or a public value type changes its layout or meaning; and
// with it the library's minor version, since programs call the virtual functions of endpoints and queues
// directly.
inline constexpr std::uint32_t interface_version = 1;
inline constexpr std::uint32_t plugin_magic = 0x54464557;  // "WEFT", little-endian

struct PluginDescriptor {
  std::uint32_t magic = plugin_magic;
  std::uint32_t version = interface_version;
  std::uint32_t size = sizeof(PluginDescriptor);
  std::uint32_t reserved = 0;
  const char* name = nullptr;          // as in WEFT_PROVIDER: lower-case letters, digits, '-'
  const char* version_text = nullptr;  // "0.1.0 (libfabric 1.17.0)"
  Provider* (*instance)() = nullptr;   // one object per process, never destroyed; must not throw
};

}  // namespace weft::provider

#define WEFT_EXPORT_PROVIDER(name_text, version_string, instance_function)                                \
  extern "C" __attribute__((visibility("default"))) const std::uint32_t weft_provider_interface_version = \
      ::weft::provider::interface_version;                                                                \
  extern "C" __attribute__((visibility("default"))) const ::weft::provider::PluginDescriptor*             \
  weft_provider_v1() {                                                                                    \
    static const ::weft::provider::PluginDescriptor descriptor{                                           \
        .name = name_text, .version_text = version_string, .instance = instance_function};                \
    return &descriptor;                                                                                   \
  }
