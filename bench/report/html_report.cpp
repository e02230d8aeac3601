#include "html_report.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "../table.hpp"
#include "assets.hpp"

namespace perf {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += letter;
    }
  }
  return result;
}

// Inside a script element the only thing that ends it is "</", and "<!--" confuses it.
std::string for_script(std::string text) {
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;) text.replace(at, 1, "\\u003c");
  return text;
}

std::string figure(const std::optional<double>& value, int decimals) {
  return fmt::format("<td>{}</td>", value ? fmt::format("{:.{}f}", *value, decimals) : "–");
}

std::string figures_cells(const Figures& figures) {
  return fmt::format("<td>{}</td>", latency_text(figures.latency_p50, "–")) + figure(figures.latency_p99, 2) +
         fmt::format("<td>{}</td>", figures.rate ? rate_text(*figures.rate) : "–") +
         figure(figures.bandwidth, 0);
}

std::string ratio_cell(const RowResult& row) {
  if (row.comparisons.empty() || !row.comparisons.front().ratio) return "<td>–</td>";
  const RatioSummary& ratio = *row.comparisons.front().ratio;
  return fmt::format("<td>{:.3f} [{:.3f}, {:.3f}]{}</td>", ratio.median, ratio.interval.low,
                     ratio.interval.high, ratio.resolved ? "" : " not resolved");
}

std::string table_rows(const RowResult& row) {
  const Workload& workload = row.workload;
  std::string text = fmt::format(
      "<tr class=\"weft\"><td class=\"text\">{}</td><td class=\"text\">{}</td><td "
      "class=\"text\">{}</td><td>{}</td>"
      "<td class=\"text\">{}</td><td>{}</td><td>{}</td>",
      escaped(row.provider), escaped(row.fabric), escaped(title(workload)), size_text(workload.size),
      to_string(workload.level), workload.depth, workload.batch);
  if (row.weft_problem.empty()) {
    text += figures_cells(row.weft) + ratio_cell(row);
  } else {
    text +=
        fmt::format("<td class=\"problem\" colspan=\"5\">did not run: {}</td>", escaped(row.weft_problem));
  }
  text += fmt::format("</tr>\n<tr class=\"bare\"><td></td><td class=\"text\" colspan=\"6\">{}, {}</td>",
                      escaped(row.native_name.empty() ? "bare" : row.native_name),
                      to_string(workload.native_kind));
  if (row.native_problem.empty()) {
    text += figures_cells(row.native) + "<td></td>";
  } else {
    text +=
        fmt::format("<td class=\"problem\" colspan=\"5\">no baseline: {}</td>", escaped(row.native_problem));
  }
  return text + "</tr>\n";
}

std::string table(const std::vector<RowResult>& rows) {
  std::string text = "<table>\n<thead><tr>";
  for (const char* name : {"provider", "fabric", "operation"})
    text += fmt::format("<th class=\"text\">{}</th>", name);
  text += "<th>size</th><th class=\"text\">level</th>";
  for (const char* name : {"depth", "batch", "p50 us", "p99 us", "M msg/s", "MB/s", "ratio to bare [95 %]"}) {
    text += fmt::format("<th>{}</th>", name);
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const RowResult& row : rows) text += table_rows(row);
  return text + "</tbody>\n</table>";
}

std::string machine(const ReportHost& host, const std::vector<RowResult>& rows) {
  std::vector<double> probes;
  for (const RowResult& row : rows) probes.insert(probes.end(), row.probes.begin(), row.probes.end());
  return fmt::format(
      "<p>{}, {} cores, {}; client on core {}, server on core {}. The two cores were {}. {}, {}. Taken {}, "
      "load average "
      "{:.1f} before.</p>",
      escaped(host.machine.processor), host.machine.processors, escaped(host.machine.kernel),
      host.cores.client, host.cores.server, state_text(probes), escaped(host.machine.compiler),
      escaped(host.machine.build), escaped(host.machine.time), host.machine.load);
}

// Each place once, so that nothing in what is filled in can be taken for a place.
std::string filled(std::string_view page,
                   const std::vector<std::pair<std::string_view, std::string>>& places) {
  std::string text;
  for (const auto& [name, content] : places) {
    const std::string mark = fmt::format("<!-- {} -->", name);
    const std::size_t at = page.find(mark);
    if (at == std::string_view::npos) throw std::logic_error("the page has no place for " + mark);
    text.append(page.substr(0, at)).append(content);
    page.remove_prefix(at + mark.size());
  }
  return text.append(page);
}

}  // namespace

std::string html_report(const ReportHost& host, const std::vector<RowResult>& rows) {
  return filled(page_asset(), {{"machine", machine(host, rows)},
                               {"legend", fmt::format("<p class=\"quiet\">{}</p>", escaped(table_legend()))},
                               {"table", table(rows)},
                               {"figures", for_script(json_report(host, rows))},
                               {"notice", for_script(std::string(notice_asset()))},
                               {"library", std::string(library_asset())}});
}

void write_html_report(const std::string& file, const ReportHost& host, const std::vector<RowResult>& rows) {
  errno = 0;
  std::ofstream output(file);
  output << html_report(host, rows);
  output.close();
  if (!output) {
    throw std::runtime_error(
        fmt::format("cannot write '{}': {}", file, std::generic_category().message(errno)));
  }
}

}  // namespace perf
