// Choosing a provider when none is named (SEL-1).
#pragma once

#include "provider_opening.hpp"
#include "selection.hpp"
#include "weft/provider/provider.hpp"

namespace weft::core {

// Opens the fabric of the highest priority that can run and is not excluded; never one whose trust is
// `whoever reaches the port`. Warns once, in one line, about what would have come before it and why that was
// passed over (SEL-4). Throws Error(unavailable) with the reason of each when nothing can run.
[[nodiscard]] OpenedChoice open_automatically(const Selection& selection,
                                              const provider::OpenRequest& request);

}  // namespace weft::core
