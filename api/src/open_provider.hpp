// Choosing and opening a provider (SEL-1 to SEL-4).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "address.hpp"
#include "weft/context.hpp"
#include "weft/provider/context.hpp"
#include "weft/provider/provider.hpp"

namespace weft::core {

struct OpenedProvider {
  std::unique_ptr<provider::Context> context;
  std::string name;     // with decorators in front: "trace+name"; without what lies beneath
  std::string version;  // the innermost provider's own text
  // What the options and the environment came to.
  SocketAddress local_address;     // the device's address, port 0; no address when no device was asked for
  std::string local_address_text;  // as Attributes::local_address; "any" when it is bound to none
  std::chrono::milliseconds peer_timeout{};
};

// `events` must outlive the context; the provider may call it from the moment it opens.
//
// Opens what the options, else WEFT_PROVIDER, else the priorities choose; logs the lines of SEL-4. Throws
// Error as Context::open.
[[nodiscard]] OpenedProvider open_provider(const ContextOptions& options, provider::ContextEvents& events);

}  // namespace weft::core
