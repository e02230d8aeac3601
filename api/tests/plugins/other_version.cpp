// A plug-in of another interface version. Whoever runs any of its code dies: it must be refused unrun
// (SEL-6).
#include <cstdint>
#include <cstdlib>

namespace {
struct RunsWhenLoaded {
  RunsWhenLoaded() { std::abort(); }
};
const RunsWhenLoaded runs_when_loaded;
}  // namespace

extern "C" __attribute__((visibility("default"))) const std::uint32_t weft_provider_interface_version;
extern "C" const std::uint32_t weft_provider_interface_version = 4711;
extern "C" __attribute__((visibility("default"))) const void* weft_provider_v1() { std::abort(); }
