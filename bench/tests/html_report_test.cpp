// The page of `weft-perf compare --report`, as far as can be seen without a browser.
#include "report/html_report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace perf {
namespace {

RowResult row_of(const std::string& provider, std::size_t size, double weft, double native) {
  RowResult row;
  row.provider = provider;
  row.fabric = "loopback";
  row.workload = {.operation = Operation::send, .metric = Metric::latency, .size = size};
  row.native_name = "bare " + provider;
  row.weft.latency_p50 = weft;
  row.native.latency_p50 = native;
  row.probes = {0.07};
  Comparison comparison;
  comparison.metric = "latency_p50_us";
  comparison.weft = weft;
  comparison.native = native;
  comparison.pairs.assign(50, {weft, native});
  comparison.ratio = summarize_ratios(comparison.pairs);
  row.comparisons.push_back(comparison);
  return row;
}

std::string page_of(const std::vector<RowResult>& rows) {
  return html_report({.machine = {}, .cores = {}, .seconds = 20}, rows);
}

// What stands between the tag of that script and its end.
std::string script(const std::string& page, const std::string& id) {
  const std::string start = "id=\"" + id + "\">";
  const std::size_t from = page.find(start) + start.size();
  return page.substr(from, page.find("</script>", from) - from);
}

TEST(HtmlReport, HoldsEveryRowInTheTableAndForThePlots) {
  const std::vector<RowResult> rows = {row_of("tcp", 8, 12.25, 11.75), row_of("tcp", 64, 13.5, 12.5),
                                       row_of("other", 64, 3.25, 2.75)};
  const std::string page = page_of(rows);
  const std::string table = page.substr(page.find("<table>"), page.find("</table>") - page.find("<table>"));
  for (const char* figure : {">12.25<", ">11.75<", ">13.50<", ">12.50<", ">3.25<", ">2.75<", "bare other"}) {
    EXPECT_NE(table.find(figure), std::string::npos) << figure;
  }
  const auto figures = nlohmann::json::parse(script(page, "figures"));
  ASSERT_EQ(figures.at("results").size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(figures["results"][i].at("provider"), rows[i].provider);
    EXPECT_EQ(figures["results"][i].at("size"), rows[i].workload.size);
    EXPECT_EQ(figures["results"][i].at("weft"), *rows[i].weft.latency_p50);
    EXPECT_EQ(figures["results"][i].at("native"), *rows[i].native.latency_p50);
  }
}

TEST(HtmlReport, NeedsNothingOutsideIt) {
  const std::string page = page_of({row_of("tcp", 8, 2, 1)});
  for (const char* load : {"src=", "href=", "@import", "url(", "<link", "<img", "<iframe"}) {
    const std::string own = page.substr(0, page.find("<script>"));
    EXPECT_EQ(own.find(load), std::string::npos) << load;
  }
  // The library comes with its notice, and is there whole.
  EXPECT_NE(script(page, "notice").find("Permission is hereby granted"), std::string::npos);
  EXPECT_NE(page.find("Released under the MIT License"), std::string::npos);
  EXPECT_NE(page.find("new Chart(canvas"), std::string::npos);
  EXPECT_GT(page.size(), 100'000U);
}

TEST(HtmlReport, NothingInTheFiguresBecomesMarkup) {
  RowResult row = row_of("tcp", 8, 2, 1);
  row.provider = "</script><b>&";
  row.weft_problem = "<i>\"gone\"</i> <!-- table -->";
  const std::string page = page_of({row});
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_EQ(page.find("<i>"), std::string::npos);
  EXPECT_NE(page.find("&lt;i&gt;&quot;gone&quot;"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(script(page, "figures")).at("results").at(0).at("provider"), row.provider);
}

TEST(HtmlReport, SaysWhatDidNotRun) {
  RowResult row = row_of("tcp", 8, 2, 1);
  row.comparisons[0].native.reset();
  row.comparisons[0].ratio.reset();
  row.native_problem = "this build has none for this provider";
  const std::string page = page_of({row});
  EXPECT_NE(page.find("no baseline: this build has none"), std::string::npos);
}

TEST(HtmlReport, NamesTheFileItCannotWrite) {
  try {
    write_html_report("/nonexistent/page.html", {.machine = {}, .cores = {}, .seconds = 1}, {});
    FAIL() << "writing into a folder that does not exist succeeded";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/page.html"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace perf
