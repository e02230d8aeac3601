// The way in: choosing a provider, opening a device, making everything else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "weft/attributes.hpp"
#include "weft/completion_queue.hpp"
#include "weft/endpoint.hpp"
#include "weft/export.hpp"
#include "weft/listener.hpp"
#include "weft/memory_region.hpp"
#include "weft/receive_queue.hpp"

namespace weft {

namespace core {
class ContextState;
}

// Every field left as it is takes its value from the environment variable named with it, then the default.
struct ContextOptions {
  // A name, a list, exclusions (SEL-1, SEL-2). Wins over WEFT_PROVIDER.
  std::string provider{};
  // Chooses the device by one of this host's addresses ("10.0.0.1", "fe80::1%eth0") or by interface name
  // ("eth0"). WEFT_DEVICE. Also the source address of connections.
  std::string device{};
  ThreadMode thread_mode = ThreadMode::safe;             // THR-1, THR-2
  ProgressMode progress_mode = ProgressMode::automatic;  // PRG-6
  // A dead peer is noticed within this time (ERR-3), 100 ms to 1 h. 0: WEFT_PEER_TIMEOUT, else 10 s.
  std::chrono::milliseconds peer_timeout{0};
};

// One device of one provider. A handle; copies name the same context. Everything made from it keeps it alive,
// so handles can be destroyed in any order (ERR-5).
class WEFT_API Context {
 public:
  Context() noexcept = default;

  // Opens what the options, else WEFT_PROVIDER, else the priorities of the providers choose (SEL-1). Logs one
  // line at `info` (SEL-4). Throws Error: not_found or unavailable with the value, the names that exist and
  // the reason of each (SEL-3); invalid_argument for a bad option.
  [[nodiscard]] static Context open(const ContextOptions& options = {});

  [[nodiscard]] CompletionQueue create_completion_queue(const CompletionQueueOptions& options = {});
  [[nodiscard]] ReceiveQueue create_receive_queue(const ReceiveQueueOptions& options);

  // Registers memory (MEM-1). Throws Error: invalid_argument (length 0, memory that does not allow the
  // access), resource_limit with the limit, its value and the size (MEM-6), unsupported (a kind this provider
  // lacks).
  [[nodiscard]] MemoryRegion register_memory(const RegistrationRequest& request);
  [[nodiscard]] MemoryRegion register_memory(void* address, std::size_t length, Access access);
  // Read-only memory: as a source, and for remote reading.
  [[nodiscard]] MemoryRegion register_memory(const void* address, std::size_t length,
                                             Access access = Access::none);
  // Any contiguous container or array of trivially copyable elements.
  template <std::ranges::contiguous_range Range>
  requires std::is_trivially_copyable_v<std::ranges::range_value_t<Range>>
  [[nodiscard]] MemoryRegion register_memory(Range&& range, Access access) {
    return register_memory(std::ranges::data(range),
                           std::ranges::size(range) * sizeof(*std::ranges::data(range)), access);
  }

  // Listens at "host:port" (CON-1): "0.0.0.0:7471", "[::1]:0", "eth0-name.example:7471", ":7471" for all
  // addresses.
  [[nodiscard]] Listener listen(std::string_view address, const ListenOptions& options);

  // Starts to connect to "host:port" and returns at once (CON-2). The outcome is a `connect` completion on
  // the endpoint's receive-side queue, or the result of wait_up(). Throws Error only for options that can
  // never work.
  [[nodiscard]] Endpoint connect(std::string_view address, const EndpointOptions& options);

  [[nodiscard]] const Attributes& attributes() const;
  // Event counts since open.
  [[nodiscard]] std::vector<Counter> counters() const;

  // Ends every endpoint and listener of the context now; handles stay valid and inert. Under 2 s (ERR-5).
  void close();

  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

 private:
  friend struct core::Opener;
  explicit Context(std::shared_ptr<core::ContextState> state) noexcept : state_(std::move(state)) {}

  std::shared_ptr<core::ContextState> state_;
};

}  // namespace weft
