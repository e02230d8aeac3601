// fork(): the parent is not disturbed, and in the child every weft object is inert (MEM-7).
#pragma once

namespace weft::core {

class ContextCore;

// From registration on, a child closes the context's descriptors and makes it inert.
void register_for_fork(ContextCore& context);
void unregister_for_fork(ContextCore& context) noexcept;

}  // namespace weft::core
