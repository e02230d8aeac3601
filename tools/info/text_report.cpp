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

std::string selector_of(const weft::ProviderReport& report, const weft::FabricReport& fabric) {
  return fabric.name.empty() ? report.name : report.name + ':' + fabric.name;
}

void tell_opened(Page& page, const OpenedFabric& fabric) {
  if (!fabric.attributes) {
    page.paragraph("but it could not be opened:", 6);
    page.paragraph(fabric.problem, 8);
    return;
  }
  const weft::Attributes& attributes = *fabric.attributes;
  page.entry("limits", limits_text(attributes.limits), 6);
  page.entry("trust",
             fmt::format("{} {} to be trusted{}", word(attributes.trust),
                         attributes.trust == weft::Trust::connected_peers ? "have" : "has",
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

// A fabric on all its devices: what WEFT_PROVIDER takes for it, then what it is like.
void tell_usable(Page& page, const weft::ProviderReport& report, const OpenedFabric& opened) {
  for (const weft::FabricReport& fabric : report.fabrics) {
    if (!fabric.usable || selector_of(report, fabric) != opened.selector) continue;
    page.paragraph(
        fmt::format(
            "{}{}: can run{}", opened.selector,
            fabric.device.empty() || fabric.device == "any" ? "" : " on " + fabric.device,
            fabric.trust == weft::Trust::whoever_reaches_the_port
                ? ", but is never chosen automatically: its own wire code trusts whoever reaches the port"
                : ""),
        4);
  }
  tell_opened(page, opened);
}

void tell_unusable(Page& page, const weft::ProviderReport& report) {
  for (const weft::FabricReport& fabric : report.fabrics) {
    if (fabric.usable) continue;
    page.paragraph(fmt::format("{}{}: cannot run: {}", selector_of(report, fabric),
                               fabric.device.empty() || fabric.device == "any" ? "" : " on " + fabric.device,
                               fabric.reason.empty() ? "it gives no reason" : fabric.reason),
                   4);
  }
}

// Where a plug-in lies is worth saying where that is not weft's own folder, which is the last one searched.
std::string place_of(const weft::ProviderReport& report, const Findings& findings) {
  const std::string folder = report.path.substr(0, report.path.rfind('/'));
  const bool usual = !findings.plugin_folders.empty() && folder == findings.plugin_folders.back();
  return usual || report.path.empty() ? "" : fmt::format(", from {}", report.path);
}

void tell_provider(Page& page, const Provider& provider, const Findings& findings) {
  const weft::ProviderReport& report = provider.report;
  if (!report.loaded) {
    page.paragraph(fmt::format("{}: cannot be loaded", report.name));
    page.entry("why", report.reason, 4);
    if (!provider.advice.empty()) page.entry("what to do", provider.advice, 4);
    return;
  }
  page.paragraph(fmt::format("{} {}{}", report.name, report.version, place_of(report, findings)));
  if (report.fabrics.empty()) page.paragraph("cannot run: it reports no fabric", 4);
  for (const OpenedFabric& opened : provider.opened) tell_usable(page, report, opened);
  tell_unusable(page, report);
}

// The one a program gets first, then what else can run, then the rest.
void tell_providers(Page& page, const Findings& findings) {
  page.heading("Providers, as WEFT_PROVIDER takes them");
  std::string decorators;
  for (const int rank : {0, 1, 2}) {
    for (const Provider& provider : findings.providers) {
      const weft::ProviderReport& report = provider.report;
      if (report.decorator) {
        if (rank == 0) decorators += (decorators.empty() ? "" : ", ") + report.name;
        continue;
      }
      const bool chosen = findings.choice.attributes && findings.choice.attributes->provider == report.name;
      const int its = chosen ? 0 : provider.opened.empty() ? 2 : 1;
      if (its == rank) tell_provider(page, provider, findings);
    }
  }
  if (findings.providers.empty()) page.paragraph("none was found");
  for (const std::string& name : findings.missing) {
    page.paragraph(fmt::format("{}: not installed; its Debian package is {}", name, package_of(name)));
  }
  if (!decorators.empty()) {
    page.paragraph(fmt::format("decorators, which go in front of any of them (strict+tcp): {}", decorators));
  }
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
  page.paragraph(
      fmt::format("locked memory: {} (hard limit {}); what is registered with an RDMA device is locked",
                  bytes_text(machine.locked_memory.now), bytes_text(machine.locked_memory.most)));
  page.paragraph(fmt::format("open files: {} (weft raises it to the hard limit, {})",
                             number_text(machine.open_files.now), number_text(machine.open_files.most)));
  if (machine.rdma_devices.empty()) page.paragraph("the kernel shows no RDMA device");
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
  tell_providers(page, findings);
  tell_machine(page, findings.machine);
  tell_variables(page, findings.variables);
  return page.take();
}

}  // namespace info
