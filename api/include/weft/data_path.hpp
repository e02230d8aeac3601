// How the handles reach the provider. What a program calls for each operation (posting, polling) is inline
// and goes straight to the provider's function: a call into libweft and on from there would visit three more
// places (the program's table of functions, the library, the library again on the way back), each of which
// needs its share of a processor's memory for code and branches, which a message's way through the kernel has
// mostly used up.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <utility>

#include "weft/completion.hpp"
#include "weft/provider/endpoint.hpp"
#include "weft/provider/queues.hpp"

namespace weft::core {

// A plain pointer, except that moving from it leaves null.
template <class Object>
class Aside {
 public:
  Aside() noexcept = default;
  explicit Aside(Object* object) noexcept : object_(object) {}
  Aside(const Aside&) noexcept = default;
  Aside(Aside&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Aside& operator=(const Aside&) noexcept = default;
  Aside& operator=(Aside&& other) noexcept {
    object_ = std::exchange(other.object_, nullptr);
    return *this;
  }
  ~Aside() = default;
  [[nodiscard]] bool operator==(const Aside&) const noexcept = default;
  [[nodiscard]] Object* get() const noexcept { return object_; }

 private:
  Object* object_ = nullptr;
};

// What polling needs of a completion queue.
struct PollPath {
  provider::CompletionQueue* provider = nullptr;
  // Polling is more than asking the provider: there are reports of the core's own, or the program's calls
  // move the core (PRG-6).
  std::atomic<bool> needs_care{false};
  // The context's: it is closed, or this is a forked child.
  const std::atomic<bool>* unusable = nullptr;

  [[nodiscard]] bool is_usable() const noexcept { return !unusable->load(std::memory_order_acquire); }
};

}  // namespace weft::core
