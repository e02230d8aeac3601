#include <fmt/format.h>

#include <algorithm>

#include "advice.hpp"
#include "reports.hpp"
#include "words.hpp"

namespace info {
namespace {

// Builds the page out of headings and paragraphs.
class Page {
 public:
  explicit Page(std::size_t width) : width_(width) {}

  void heading(std::string_view text) { text_ += fmt::format("{}{}\n", text_.empty() ? "" : "\n", text); }
  void paragraph(std::string_view text, std::size_t indent = 2) { entry("", text, indent); }
  // `label` in front of text that is indented further.
  void entry(std::string_view label, std::string_view text, std::size_t indent = 2) {
    const std::string head = std::string(indent, ' ') + std::string(label);
    text_ += wrapped(text, head, label.empty() ? indent : indent + label_width, width_);
  }
  void bullet(std::string_view text) { text_ += wrapped(text, "  - ", 4, width_); }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  static constexpr std::size_t label_width = 12;

  std::size_t width_;
  std::string text_;
};

std::string limits_text(const weft::Limits& limits) {
  return fmt::format(
      "messages up to {}, reads and writes up to {}, inline up to {} bytes, {} segments; {} sends and {} "
      "receives "
      "outstanding, {} reads in flight; {} kept of messages without a receive",
      bytes_text(limits.max_message), bytes_text(limits.max_transfer), limits.max_inline, limits.max_segments,
      limits.send_depth, limits.receive_depth, limits.max_outstanding_reads,
      bytes_text(limits.unexpected_bytes));
}

void tell_opened(Page& page, const OpenedFabric& fabric) {
  if (!fabric.attributes) {
    page.paragraph(fmt::format("{} says that it can run, but could not be opened:", fabric.selector), 4);
    page.paragraph(fabric.problem, 6);
    return;
  }
  const weft::Attributes& attributes = *fabric.attributes;
  const std::string over = attributes.fabric.empty() ? "" : fmt::format(" over {}", attributes.fabric);
  page.paragraph(fmt::format("WEFT_PROVIDER={}{}, device {}, address {}", fabric.selector, over,
                             attributes.device.empty() ? "any" : attributes.device,
                             attributes.local_address.empty() ? "any" : attributes.local_address),
                 4);
  page.entry("limits", limits_text(attributes.limits), 6);
  page.entry("trust",
             fmt::format("{} must be trusted{}", word(attributes.trust),
                         attributes.trust_text.empty() ? "" : ". " + attributes.trust_text),
             6);
  page.entry("modes",
             fmt::format("threads {}; progress {}", words(fabric.thread_modes), words(fabric.progress_modes)),
             6);
  page.entry("atomics", meaning(attributes.atomic_scope), 6);
  for (const weft::Deviation& deviation : attributes.deviations) {
    page.entry("deviates",
               fmt::format("from {}: {}. Instead: {}", deviation.rule, deviation.reason, deviation.instead),
               6);
  }
  if (!fabric.problem.empty()) page.entry("but", fabric.problem, 6);
}

// One line per fabric: its devices, or why it cannot run.
void tell_fabrics(Page& page, const weft::ProviderReport& report) {
  for (const weft::FabricReport& fabric : report.fabrics) {
    std::string name = fabric.name.empty() ? report.name : report.name + ':' + fabric.name;
    if (!fabric.device.empty() && fabric.device != "any") name += " on " + fabric.device;
    if (fabric.usable) {
      page.paragraph(
          fmt::format(
              "{}: can run{}", name,
              fabric.trust == weft::Trust::whoever_reaches_the_port
                  ? ", but is never chosen automatically: its own wire code trusts whoever reaches the port"
                  : ""),
          4);
    } else {
      page.paragraph(fmt::format("{}: cannot run: {}", name,
                                 fabric.reason.empty() ? "it gives no reason" : fabric.reason),
                     4);
    }
  }
}

void tell_provider(Page& page, const Provider& provider) {
  const weft::ProviderReport& report = provider.report;
  if (!report.loaded) {
    page.paragraph(fmt::format("{}: cannot be loaded", report.name));
    page.entry("why", report.reason, 4);
    if (!provider.advice.empty()) page.entry("what to do", provider.advice, 4);
    return;
  }
  page.paragraph(fmt::format("{} {}{} ({})", report.name, report.version,
                             report.decorator ? ", a decorator" : "", report.path));
  if (report.decorator) {
    page.paragraph(fmt::format("wraps any provider: WEFT_PROVIDER={}+NAME", report.name), 4);
    return;
  }
  if (report.fabrics.empty()) page.paragraph("cannot run: it reports no fabric", 4);
  tell_fabrics(page, report);
  for (const OpenedFabric& fabric : provider.opened) tell_opened(page, fabric);
}

void tell_choice(Page& page, const Findings& findings) {
  page.heading(fmt::format("weft {}", findings.version));
  if (const auto& attributes = findings.choice.attributes) {
    page.paragraph(
        fmt::format("A program that leaves the choice to the environment gets {}.", attributes->provider));
  } else {
    page.paragraph("A program that leaves the choice to the environment cannot start:");
    page.paragraph(findings.choice.problem, 4);
  }
  std::string folders;
  for (const std::string& folder : findings.plugin_folders) folders += (folders.empty() ? "" : ", ") + folder;
  page.paragraph(fmt::format("Plug-ins are looked for in {}.", folders));
}

void tell_obstacles(Page& page, const Findings& findings) {
  const auto found = obstacles(findings.machine);
  if (!findings.warnings.empty() || !found.empty()) page.heading("To look into");
  for (const std::string& warning : findings.warnings) page.bullet(warning);
  for (const Advice& advice : found) page.bullet(fmt::format("{}: {}", advice.finding, advice.remedy));
}

std::string number_text(const std::optional<std::uint64_t>& number) {
  return number ? std::to_string(*number) : "unlimited";
}

void tell_machine(Page& page, const Machine& machine) {
  page.heading("This machine");
  page.paragraph(fmt::format("locked memory: {} (hard limit {})", bytes_text(machine.locked_memory.now),
                             bytes_text(machine.locked_memory.most)));
  page.paragraph(fmt::format("open files: {} (weft raises it to the hard limit, {})",
                             number_text(machine.open_files.now), number_text(machine.open_files.most)));
  if (machine.rdma_devices.empty()) page.paragraph("no RDMA device");
  for (const RdmaDevice& device : machine.rdma_devices) {
    page.paragraph(fmt::format("RDMA device {}: {}, port {}, {}", device.name,
                               device.link_layer.empty() ? "no port" : device.link_layer,
                               device.state.empty() ? "unknown" : device.state,
                               device.node.empty()
                                   ? "no node under /dev/infiniband"
                                   : device.node + (device.permitted ? "" : " (no permission)")));
  }
}

void tell_variables(Page& page, const std::vector<weft::VariableReport>& variables) {
  page.heading("Environment variables");
  for (const weft::VariableReport& variable : variables) {
    page.paragraph(
        fmt::format("{}{}", variable.name, variable.is_set ? fmt::format(" = \"{}\"", variable.value) : ""));
    page.paragraph(fmt::format("{}. Default: {}.", variable.meaning,
                               variable.default_value.empty() ? "unset" : variable.default_value),
                   6);
  }
}

}  // namespace

std::string text_report(const Findings& findings, std::size_t width) {
  Page page(width);
  tell_choice(page, findings);
  tell_obstacles(page, findings);
  page.heading("Providers");
  for (const Provider& provider : findings.providers) tell_provider(page, provider);
  if (findings.providers.empty()) page.paragraph("none was found");
  for (const std::string& name : findings.missing) {
    page.paragraph(fmt::format("{}: not installed; its Debian package is {}", name, package_of(name)));
  }
  tell_machine(page, findings.machine);
  tell_variables(page, findings.variables);
  return page.take();
}

}  // namespace info
