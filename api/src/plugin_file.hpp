// Looking at a plug-in's file before the loader runs anything of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weft::core {

struct PluginFile {
  std::string reason;                    // why it cannot be a plug-in; empty when it may be one
  std::optional<std::uint32_t> version;  // of the interface; nothing when it must be loaded to tell
};

// Reads the interface version out of the file's symbol table. So a file that is no shared object, or only
// half of one (which would kill the process when mapped), or built against another version, is told without
// running its code.
[[nodiscard]] PluginFile inspect_plugin_file(const std::string& path);

}  // namespace weft::core
