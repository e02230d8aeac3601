// Files that are part of the program.
#pragma once

#include <string_view>

namespace perf {

[[nodiscard]] std::string_view page_asset();     ///< page.html, with places to fill.
[[nodiscard]] std::string_view library_asset();  ///< Chart.js, which draws the plots.
[[nodiscard]] std::string_view notice_asset();   ///< Its copyright and licence, which must go where it goes.

}  // namespace perf
