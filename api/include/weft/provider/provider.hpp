// What a provider is, and what the core offers to it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/attributes.hpp"
#include "weft/discovery.hpp"
#include "weft/log.hpp"
#include "weft/provider/plugin.hpp"

namespace weft::provider {

class Context;

// The core's services. Valid for the life of the process; any thread.
class Host {
 public:
  virtual ~Host() = default;
  virtual void log(LogLevel level, std::string_view line) noexcept = 0;
  [[nodiscard]] virtual bool logs(LogLevel level) const noexcept = 0;
  // The value of WEFT_<PROVIDER>_<name>, which must be among Provider::variables().
  [[nodiscard]] virtual std::optional<std::string> variable(std::string_view full_name) const = 0;
  // Random bytes from the operating system, for keys (SEC-2). Throws Error(system_error).
  virtual void random_bytes(std::span<std::byte> out) const = 0;
};

// The core's side of one context. Any thread, with the provider's locks held.
class ContextEvents {
 public:
  virtual ~ContextEvents() = default;
  // Calls Context::service soon, earlier than the time it returned last: something is held back (PRG-5).
  // Cheap when already requested, else a system call.
  virtual void request_service() noexcept = 0;
};

// A variable that belongs to a provider; its name starts with WEFT_<PROVIDER>_ (SEL-7).
struct Variable {
  std::string name;
  std::string default_value;
  std::string meaning;
};

// What the core asks for when it opens a context.
struct OpenRequest {
  std::string_view beneath;        // what followed the colon in the provider's name; may be empty (SEL-2)
  std::string_view device;         // an address of this host or an interface name; empty: by route
  std::vector<std::byte> address;  // when `device` names or has an address: that sockaddr, else empty
  ThreadMode thread_mode = ThreadMode::safe;
  ProgressMode progress_mode = ProgressMode::automatic;
  std::chrono::milliseconds peer_timeout{10'000};
  ContextEvents* events = nullptr;  // outlives the context; null in a probe
};

// A decorator is opened over an already open context and wraps every object of it; other providers are not.
class Provider {
 public:
  virtual ~Provider() = default;

  // Which fabrics and devices can run here, or the reason not; devices are really opened (SEL-3). Control
  // path, may be slow, does not throw. A provider that is always there still returns one report.
  [[nodiscard]] virtual std::vector<FabricReport> probe(Host& host) = 0;
  [[nodiscard]] virtual std::vector<Variable> variables() const = 0;
  [[nodiscard]] virtual bool is_decorator() const noexcept = 0;

  // Opens a device. Throws Error: not_found, unavailable, invalid_argument, resource_limit. `inner` is null
  // except for a decorator.
  [[nodiscard]] virtual std::unique_ptr<Context> open(Host& host, const OpenRequest& request,
                                                      std::unique_ptr<Context> inner) = 0;
};

}  // namespace weft::provider
