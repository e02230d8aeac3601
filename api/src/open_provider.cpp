#include "open_provider.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "automatic_choice.hpp"
#include "device.hpp"
#include "environment.hpp"
#include "log.hpp"
#include "plugin_loader.hpp"
#include "provider_opening.hpp"
#include "selection.hpp"
#include "survey.hpp"
#include "text.hpp"

namespace weft::core {
namespace {

// Known and loaded at the two moments at which unknown variables are looked for: before opening, since a
// mistyped name may be why it fails, and after, since then the provider's own variables are known.
void warn_about_variables() {
  std::vector<environment::KnownProvider> known;
  for (const Plugin& plugin : PluginLoader::instance().find()) {
    environment::KnownProvider provider{plugin.name, {}};
    if (plugin.is_loaded()) provider.variables = plugin.host->variables();
    known.push_back(std::move(provider));
  }
  environment::warn_unknown(known);
}

std::chrono::milliseconds choose_peer_timeout(const ContextOptions& options) {
  const std::chrono::milliseconds wanted = options.peer_timeout;
  if (wanted.count() == 0) return environment::peer_timeout().value_or(environment::default_peer_timeout);
  if (wanted < environment::least_peer_timeout || wanted > environment::greatest_peer_timeout) {
    throw Error(
        Status::invalid_argument,
        fmt::format("ContextOptions::peer_timeout is {} ms; allowed: {} to {} ms, or 0 for "
                    "WEFT_PEER_TIMEOUT, else {} ms",
                    wanted.count(), environment::least_peer_timeout.count(),
                    environment::greatest_peer_timeout.count(), environment::default_peer_timeout.count()));
  }
  return wanted;
}

Selection choose_selection(const ContextOptions& options) {
  if (!options.provider.empty()) return parse_selection(options.provider, "ContextOptions::provider");
  // Set but empty is not unset: it is refused, since nobody can tell what was meant.
  if (const auto set = environment::provider_choice()) return parse_selection(*set, "WEFT_PROVIDER");
  return {};
}

// The request, with what it refers to.
struct Wish {
  std::string device;
  SocketAddress address;
  provider::OpenRequest request;
};

void fill(Wish& wish, const ContextOptions& options) {
  wish.device = !options.device.empty() ? options.device : environment::device_choice().value_or("");
  wish.request.thread_mode = options.thread_mode;
  wish.request.progress_mode = options.progress_mode;
  wish.request.peer_timeout = choose_peer_timeout(options);
  if (wish.device.empty()) return;
  wish.address = find_device(wish.device).address;
  wish.request.device = wish.device;
  const auto bytes = wish.address.bytes();
  wish.request.address.assign(bytes.begin(), bytes.end());
}

std::string searched_folders() {
  return "plug-ins are looked for in " + joined(PluginLoader::folders()) +
         " (WEFT_PROVIDER_PATH adds folders; weft-info names the packages of those not installed)";
}

// Every name that exists, and why it cannot run (SEL-3); those already tried are not asked again.
std::string what_exists(const std::vector<std::string>& tried) {
  std::vector<std::string> items;
  for (const Plugin& plugin : PluginLoader::instance().find()) {
    if (std::find(tried.begin(), tried.end(), plugin.name) != tried.end()) {
      items.push_back(fmt::format("{} (as said)", plugin.name));
    } else {
      items.push_back(fmt::format("{} ({})", plugin.name, summary(survey(plugin.name))));
    }
  }
  return "providers on this machine: " + joined(items);
}

// The one code for several failures: the common one, else `unavailable`.
class CommonCode {
 public:
  void add(Status code) {
    if (!code_) code_ = code;
    if (*code_ != code) code_ = Status::unavailable;
  }
  [[nodiscard]] Status get() const { return code_.value_or(Status::unavailable); }

 private:
  std::optional<Status> code_;
};

OpenedChoice open_named(const Selection& selection, const provider::OpenRequest& request) {
  std::vector<std::string> failures;
  std::vector<std::string> tried;
  CommonCode code;
  for (const Choice& choice : selection.choices) {
    try {
      OpenedChoice opened = open_choice(choice, request);
      if (!failures.empty()) {
        log(LogLevel::warning, "took {} of {}; passed over {}", choice.to_string(), selection.source,
            joined(failures, "; "));
      }
      return opened;
    } catch (const Error& error) {
      code.add(error.code());
      failures.push_back(fmt::format("{}: {}", quoted(choice.to_string()), error.what()));
      tried.push_back(choice.base.name);
    }
  }
  throw Error(code.get(), fmt::format("cannot open a provider for {}: {}; {}; {}", selection.source,
                                      joined(failures, "; "), what_exists(tried), searched_folders()));
}

// A provider that leaves binding to the core does not know the address.
std::string local_address_of(const Attributes& attributes, const SocketAddress& asked_for) {
  if (!attributes.local_address.empty()) return attributes.local_address;
  return asked_for ? asked_for.host() : "any";
}

void log_opening(const OpenedChoice& opened, const std::string& local_address) {
  if (!logs(LogLevel::info)) return;
  const Attributes& attributes = opened.context->attributes();
  const std::string fabric = attributes.fabric.empty() ? "" : fmt::format(" over {}", attributes.fabric);
  log(LogLevel::info,
      "opened provider {} {}{}: device {}, address {}, segment size {} bytes, thread mode {}, progress {}",
      opened.name, opened.version, fabric, attributes.device.empty() ? "any" : attributes.device,
      local_address, attributes.segment_size, to_text(attributes.thread_mode),
      to_text(attributes.progress_mode));
}

}  // namespace

OpenedProvider open_provider(const ContextOptions& options, provider::ContextEvents& events) {
  static_cast<void>(
      environment::log_level());  // a wrong value is an error here; logging itself must not throw
  warn_about_variables();
  const Selection selection = choose_selection(options);
  Wish wish;
  fill(wish, options);
  wish.request.events = &events;

  OpenedChoice opened = selection.is_automatic() ? open_automatically(selection, wish.request)
                                                 : open_named(selection, wish.request);
  warn_about_variables();
  std::string local_address = local_address_of(opened.context->attributes(), wish.address);
  log_opening(opened, local_address);
  return {std::move(opened.context), std::move(opened.name),   std::move(opened.version), wish.address,
          std::move(local_address),  wish.request.peer_timeout};
}

}  // namespace weft::core
