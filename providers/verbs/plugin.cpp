// The verbs provider: weft's contract on reliable connections of InfiniBand and RoCE devices.
#include <algorithm>
#include <string>

#include "context.hpp"
#include "device_name.hpp"
#include "errors.hpp"

namespace weft::verbs {

namespace {

constexpr auto gid_variable = "WEFT_VERBS_GID_INDEX";
constexpr auto class_variable = "WEFT_VERBS_TRAFFIC_CLASS";
constexpr auto level_variable = "WEFT_VERBS_SERVICE_LEVEL";
constexpr auto posting_variable = "WEFT_VERBS_POSTING";

std::optional<std::uint32_t> number_of(provider::Host& host, const char* variable, std::uint32_t most) {
  const auto text = host.variable(variable);
  if (!text || text->empty()) return std::nullopt;
  const auto value = parse_number(*text, 0, most);
  if (!value) {
    throw Error(Status::invalid_argument, std::string(variable) + " is '" + *text +
                                              "'; it must be a number from 0 to " + std::to_string(most));
  }
  return value;
}

FabricOptions options_from(provider::Host& host, const DeviceName& name) {
  constexpr std::uint32_t most_gids = 65'535;
  constexpr std::uint32_t most_class = 255;
  constexpr std::uint32_t most_level = 15;
  FabricOptions options;
  options.gid_index = name.gid_index ? name.gid_index : number_of(host, gid_variable, most_gids);
  options.traffic_class = static_cast<std::uint8_t>(number_of(host, class_variable, most_class).value_or(0));
  options.service_level = static_cast<std::uint8_t>(number_of(host, level_variable, most_level).value_or(0));
  if (const auto posting = host.variable(posting_variable); posting && !posting->empty()) {
    if (*posting != "extended" && *posting != "plain") {
      throw Error(Status::invalid_argument,
                  std::string(posting_variable) + " is '" + *posting + "'; it can be extended or plain");
    }
    options.extended = *posting == "extended";
  }
  return options;
}

Port usable(const std::string& device, std::optional<std::uint8_t> number) {
  Port port = open_port(device, number);
  if (const std::string obstacle = port.obstacle(); !obstacle.empty())
    throw Error(Status::unavailable, "device " + device + " cannot be used: " + obstacle);
  return port;
}

// Without a device's name: the one that owns the address that was asked for, else the first that can run.
Port choose(const provider::OpenRequest& request) {
  std::string reasons;
  for (const std::string& name : device_names()) {
    try {
      Port port = usable(name, std::nullopt);
      if (request.address.empty() || port.gid_of(request.address) != nullptr) return port;
      reasons += "; " + name + " does not have the address of " + std::string(request.device);
    } catch (const Error& error) {
      reasons += std::string("; ") + error.what();
    }
  }
  if (reasons.empty()) throw Error(Status::not_found, "this machine has no RDMA device");
  throw Error(Status::not_found, "no RDMA device fits" + reasons);
}

class VerbsProvider final : public provider::Provider {
 public:
  [[nodiscard]] std::vector<FabricReport> probe(provider::Host& /*host*/) override {
    return report_devices();
  }

  [[nodiscard]] std::vector<provider::Variable> variables() const override {
    return {
        {gid_variable, "by address", "entry of the port's GID table to use, whatever the address"},
        {class_variable, "0", "traffic class of RoCE packets, 0 to 255 (its upper six bits are the DSCP)"},
        {level_variable, "0", "service level of InfiniBand packets, 0 to 15"},
        {posting_variable, "extended",
         "extended: requests are handed over one by one, and entries read field by field, where the device "
         "can "
         "do so; plain: never"}};
  }
  [[nodiscard]] bool is_decorator() const noexcept override { return false; }

  [[nodiscard]] std::unique_ptr<provider::Context> open(
      provider::Host& host, const provider::OpenRequest& request,
      std::unique_ptr<provider::Context> /*inner*/) override {
    const DeviceName name = DeviceName::parse(request.beneath);
    const FabricOptions options = options_from(host, name);
    // Kernels since 5.12 give a child copies of registered pages; on older ones the library keeps them from
    // it (MEM-7).
    static const int fork_code = ibv_is_fork_initialized() == IBV_FORK_DISABLED ? ibv_fork_init() : 0;
    if (fork_code != 0)
      host.log(LogLevel::warning,
               "verbs: fork() is not safe for registered memory here: " + text_of(fork_code));
    Port port = name.device.empty() ? choose(request) : usable(name.device, name.port);
    return std::make_unique<Context>(host, std::move(port), request, options);
  }
};

provider::Provider* instance() {
  static auto* const provider = new VerbsProvider;  // never destroyed
  return provider;
}

}  // namespace

}  // namespace weft::verbs

WEFT_EXPORT_PROVIDER("verbs", "0.1.0", weft::verbs::instance)
