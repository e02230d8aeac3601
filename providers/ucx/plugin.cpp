// The UCX provider: weft's contract on UCP, over the transports that UCX has here.
#include <string>
#include <utility>

#include "library.hpp"
#include "listener.hpp"
#include "ucx_context.hpp"

namespace weft::ucx {

namespace {

class UcxProvider final : public provider::Provider {
 public:
  [[nodiscard]] std::vector<FabricReport> probe(provider::Host& host) override {
    std::vector<FabricReport> reports;
    for (const Lanes& lanes : all_lanes()) {
      if (*lanes.name == '\0') continue;  // it is the sum of the others
      FabricReport report;
      report.name = lanes.name;
      report.priority = lanes.priority;
      report.trust = lanes.trust;
      try {
        const Library library = open_library(host, lanes, {});
        report.device = library.devices;
        rehearse(library);
        report.usable = true;
      } catch (const Error& error) {
        report.reason = error.what();
      }
      reports.push_back(std::move(report));
    }
    return reports;
  }

  [[nodiscard]] std::vector<provider::Variable> variables() const override {
    return {{hooks_variable, "off",
             "on: UCX watches the program's memory by replacing mmap and its like in the whole process; "
             "nothing here needs it"}};
  }
  [[nodiscard]] bool is_decorator() const noexcept override { return false; }

  [[nodiscard]] std::unique_ptr<provider::Context> open(
      provider::Host& host, const provider::OpenRequest& request,
      std::unique_ptr<provider::Context> /*inner*/) override {
    const Lanes& lanes = lanes_named(request.beneath);
    std::string device(request.device);
    if (!request.address.empty()) device = interface_with(request.address);
    Library library = open_library(host, lanes, device, request.address, request.peer_timeout);
    if (lanes.wire_up == WireUp::listener) rehearse(library);
    return std::make_unique<UcxContext>(host, request, std::move(library));
  }
};

provider::Provider* instance() {
  static auto* const provider = new UcxProvider;  // never destroyed
  return provider;
}

}  // namespace

}  // namespace weft::ucx

WEFT_EXPORT_PROVIDER("ucx", weft::ucx::version_text(), weft::ucx::instance)
