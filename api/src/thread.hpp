// Starting the library's own threads.
#pragma once

#include <functional>
#include <thread>

namespace weft::core {

// Starts a thread that takes no signals (ERR-6) and shows `name` (a literal of at most 15 characters) in ps
// and gdb. Throws Error(resource_limit) when the system gives no thread.
[[nodiscard]] std::thread start_thread(const char* name, std::function<void()> work);

}  // namespace weft::core
