#include "assets.hpp"

// The assembler takes the files in as they are; CMake says where they lie.
#define WEFT_ASSET(name, file)                                                     \
  asm(".pushsection .rodata\n"                                                     \
      ".global weft_asset_" #name                                                  \
      "\n"                                                                         \
      "weft_asset_" #name                                                          \
      ":\n"                                                                        \
      ".incbin \"" file                                                            \
      "\"\n"                                                                       \
      ".global weft_asset_" #name                                                  \
      "_end\n"                                                                     \
      "weft_asset_" #name                                                          \
      "_end:\n"                                                                    \
      ".byte 0\n"                                                                  \
      ".popsection\n");                                                            \
  extern "C" __attribute__((visibility("hidden"))) const char weft_asset_##name[]; \
  extern "C" __attribute__((visibility("hidden"))) const char weft_asset_##name##_end[];

WEFT_ASSET(page, WEFT_PERF_PAGE)
WEFT_ASSET(library, WEFT_PERF_CHART_JS)
WEFT_ASSET(notice, WEFT_PERF_CHART_NOTICE)

namespace perf {

std::string_view page_asset() { return {weft_asset_page, weft_asset_page_end}; }
std::string_view library_asset() { return {weft_asset_library, weft_asset_library_end}; }
std::string_view notice_asset() { return {weft_asset_notice, weft_asset_notice_end}; }

}  // namespace perf
