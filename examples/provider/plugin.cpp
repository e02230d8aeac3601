// What the core sees first: the provider and its descriptor.
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "descriptor.hpp"
#include "unix_context.hpp"

namespace unix_provider {

namespace {

class UnixProvider final : public weft::provider::Provider {
 public:
  // Looks whether it can run, by doing what running begins with.
  [[nodiscard]] std::vector<weft::FabricReport> probe(weft::provider::Host& /*host*/) override {
    weft::FabricReport report;
    report.device = "this host";
    report.priority = 100;  // in automatic choice behind everything that reaches other hosts
    report.trust = weft::Trust::nobody;
    const Descriptor tried(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    report.usable = static_cast<bool>(tried);
    if (!tried) report.reason = std::string("no Unix-domain socket can be made: ") + std::strerror(errno);
    return {report};
  }

  [[nodiscard]] std::vector<weft::provider::Variable> variables() const override {
    return {{buffer_variable, "the system's", "bytes a socket holds on their way out"}};
  }
  [[nodiscard]] bool is_decorator() const noexcept override { return false; }

  [[nodiscard]] std::unique_ptr<weft::provider::Context> open(
      weft::provider::Host& host, const weft::provider::OpenRequest& request,
      std::unique_ptr<weft::provider::Context> /*inner*/) override {
    if (!request.beneath.empty()) {
      throw weft::Error(weft::Status::not_found, "nothing called '" + std::string(request.beneath) +
                                                     "' lies beneath this provider: use its plain name");
    }
    return std::make_unique<UnixContext>(host, request);
  }
};

weft::provider::Provider* instance() {
  static auto* const provider = new UnixProvider;  // never destroyed, as plug-ins are never unloaded
  return provider;
}

}  // namespace

}  // namespace unix_provider

WEFT_EXPORT_PROVIDER(unix_provider::name, unix_provider::version, unix_provider::instance)
