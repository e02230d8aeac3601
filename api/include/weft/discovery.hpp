// What exists on this machine: providers with their fabrics, and the environment variables weft reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/attributes.hpp"
#include "weft/export.hpp"

namespace weft {

// One fabric of one provider on this machine.
struct FabricReport {
  std::string name;     // what follows the colon in WEFT_PROVIDER ("shm" in "ofi:shm"); may be empty
  std::string device;   // device or interface; empty: any
  bool usable = false;  // the device was opened (SEL-3)
  std::string reason;   // why not, and what to do about it; empty when usable
  int priority = 0;     // higher is taken first in automatic choice (SEL-1)
  Trust trust = Trust::nobody;
};

struct ProviderReport {
  std::string name;
  std::string version;
  std::string path;  // of the plug-in
  bool loaded = false;
  bool decorator = false;  // wraps another provider (SEL-2); known once loaded
  std::string reason;      // why it could not be loaded; empty when loaded
  std::vector<FabricReport> fabrics;
};

// Loads every plug-in found and asks it. Slow (devices are opened); never throws for a plug-in that cannot
// run.
[[nodiscard]] WEFT_API std::vector<ProviderReport> list_providers();

// The folders in which plug-ins are looked for, in this order: of two of one name the first is taken (SEL-6).
[[nodiscard]] WEFT_API std::vector<std::string> plugin_folders();

// One environment variable that weft or a loaded provider reads (SEL-7).
struct VariableReport {
  std::string name;
  std::string default_value;
  std::string meaning;
  std::string value;  // as set now; empty when unset
  bool is_set = false;
};

[[nodiscard]] WEFT_API std::vector<VariableReport> list_variables();

}  // namespace weft
