// A shared object that has nothing to do with weft, and must not be run to find that out.
#include <cstdlib>

namespace {
struct RunsWhenLoaded {
  RunsWhenLoaded() { std::abort(); }
};
const RunsWhenLoaded runs_when_loaded;
}  // namespace

extern "C" __attribute__((visibility("default"))) int some_function() { return 1; }
