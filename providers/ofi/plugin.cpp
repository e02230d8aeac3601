// The libfabric provider: weft's contract over reliable datagrams of libfabric (FI_EP_RDM).
#include "weft/provider/plugin.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "context.hpp"
#include "errors.hpp"

namespace weft::ofi {

namespace {

constexpr auto size_variable = "WEFT_OFI_MESSAGE_SIZE";
constexpr auto buffers_variable = "WEFT_OFI_SEND_BUFFERS";
constexpr auto offer_variable = "WEFT_OFI_OFFER_FROM";

std::uint32_t number_of(provider::Host& host, const char* variable, std::uint32_t usual, std::uint32_t least,
                        std::uint32_t most) {
  const auto text = host.variable(variable);
  if (!text || text->empty()) return usual;
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (code != std::errc() || end != text->data() + text->size() || value < least || value > most) {
    throw Error(Status::invalid_argument, std::string(variable) + " is '" + *text +
                                              "'; it must be a number from " + std::to_string(least) +
                                              " to " + std::to_string(most));
  }
  return value;
}

engine::MessageOptions options_for(provider::Host& host, const Device& device) {
  constexpr std::uint32_t smallest = 4096;
  constexpr std::uint32_t most_buffers = 4096;
  engine::MessageOptions options;
  options.most_ahead = 256;
  // Reads of the fabric go on by themselves, each operation's at once.
  if (device.fabric().fetch_size != 0) options.pull_step = ~std::uint64_t{0};
  const auto largest = static_cast<std::uint32_t>(device.message_size());
  options.buffers.size = number_of(host, size_variable, largest, std::min(smallest, largest), largest);
  options.buffers.spare = number_of(host, buffers_variable, options.buffers.spare, 1, most_buffers);
  options.buffers.most = std::max(options.buffers.most, options.buffers.spare);
  return options;
}

FabricReport report_on(const Fabric& fabric) {
  FabricReport report;
  report.name = fabric.name;
  report.priority = fabric.priority;
  report.trust = fabric.trust;
  try {
    const Device device(fabric, {}, {});
    report.usable = true;
    report.device = fabric.by_address ? "any" : device.device_name();
  } catch (const Error& error) {
    report.reason = error.what();
  }
  return report;
}

class OfiProvider final : public provider::Provider {
 public:
  [[nodiscard]] std::vector<FabricReport> probe(provider::Host& /*host*/) override {
    std::vector<FabricReport> reports;
    for (const Fabric& fabric : fabrics()) reports.push_back(report_on(fabric));
    return reports;
  }

  [[nodiscard]] std::vector<provider::Variable> variables() const override {
    return {{size_variable, "by fabric",
             "bytes of the largest message given to libfabric, 4096 to what the fabric takes; alike on both "
             "sides"},
            {buffers_variable, "30",
             "send buffers of a completion queue beside two for each endpoint, 1 to 4096"},
            {offer_variable, "by fabric",
             "bytes from which on the target fetches payload itself, with a single copy; 0: never"}};
  }
  [[nodiscard]] bool is_decorator() const noexcept override { return false; }

  [[nodiscard]] std::unique_ptr<provider::Context> open(
      provider::Host& host, const provider::OpenRequest& request,
      std::unique_ptr<provider::Context> /*inner*/) override {
    std::unique_ptr<Device> device = open_device(request);
    const engine::MessageOptions options = options_for(host, *device);
    engine::EngineOptions engine_options;
    engine_options.offer_from = number_of(host, offer_variable, device->fabric().offer_from, 0,
                                          device->fabric().offer_from == 0 ? 0 : ~0U);
    // Where each waits for an answer of the peer's, the next is under way meanwhile.
    if (device->fabric().fetch_size != 0) engine_options.fetches_at_once = engine::Offers::most_fetches;
    return std::make_unique<OfiContext>(host, request, std::move(device), engine_options, options);
  }

 private:
  static std::unique_ptr<Device> open_one(const Fabric& fabric, const provider::OpenRequest& request) {
    Device::apply_setting(fabric);
    return std::make_unique<Device>(fabric, request.address, Device::interface_of(fabric, request.device));
  }

  static std::unique_ptr<Device> open_device(const provider::OpenRequest& request) {
    if (!request.beneath.empty()) {
      const Fabric* const fabric = find_fabric(request.beneath);
      if (fabric != nullptr) return open_one(*fabric, request);
      std::string names;
      for (const Fabric& known : fabrics()) names += (names.empty() ? "" : ", ") + std::string(known.name);
      throw Error(Status::not_found, "nothing called '" + std::string(request.beneath) +
                                         "' lies beneath this provider; there are: " + names);
    }
    // By rank, those that reach other hosts.
    std::vector<const Fabric*> ranked;
    for (const Fabric& fabric : fabrics()) {
      if (!fabric.named_here) ranked.push_back(&fabric);
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const Fabric* a, const Fabric* b) { return a->priority > b->priority; });
    std::string reasons;
    for (const Fabric* fabric : ranked) {
      try {
        return open_one(*fabric, request);
      } catch (const Error& error) {
        reasons += std::string(reasons.empty() ? "" : "; ") + std::string(fabric->name) + ": " + error.what();
      }
    }
    throw Error(Status::unavailable, "no fabric of libfabric can run here: " + reasons);
  }
};

provider::Provider* instance() {
  static auto* const provider = new OfiProvider;  // never destroyed
  return provider;
}

}  // namespace

}  // namespace weft::ofi

WEFT_EXPORT_PROVIDER("ofi", weft::ofi::provider_version, weft::ofi::instance)
