// What people and programs get to read.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "json_report.hpp"
#include "table.hpp"

namespace perf {
namespace {

RowResult row_with(std::size_t pairs, double ratio) {
  RowResult row;
  row.provider = "tcp";
  row.fabric = "loopback";
  row.workload = {
      .metric = Metric::rate, .size = 64, .depth = 512, .batch = 64, .native_kind = NativeKind::coalescing};
  row.native_name = "bare sockets";
  row.weft.rate = 5.0 * ratio;
  row.native.rate = 5.0;
  row.probes = {0.07};
  Comparison comparison;
  comparison.metric = "rate_mps";
  comparison.weft = row.weft.rate;
  comparison.native = row.native.rate;
  comparison.pairs.assign(pairs, {5.0 * ratio, 5.0});
  if (pairs > 0) comparison.ratio = summarize_ratios(comparison.pairs);
  row.comparisons.push_back(comparison);
  return row;
}

nlohmann::json parsed(const std::vector<RowResult>& rows) {
  return nlohmann::json::parse(json_report({.machine = {}, .cores = {}, .seconds = 20}, rows));
}

TEST(JsonReport, HasTheAgreedForm) {
  const auto report = parsed({row_with(60, 0.8)});
  ASSERT_TRUE(report.at("host").is_object());
  const auto& result = report.at("results").at(0);
  EXPECT_EQ(result.at("provider"), "tcp");
  EXPECT_EQ(result.at("fabric"), "loopback");
  EXPECT_EQ(result.at("operation"), "send");
  EXPECT_EQ(result.at("metric"), "rate_mps");
  EXPECT_EQ(result.at("size"), 64);
  EXPECT_EQ(result.at("depth"), 512);
  EXPECT_EQ(result.at("batch"), 64);
  EXPECT_DOUBLE_EQ(result.at("weft"), 4.0);
  EXPECT_DOUBLE_EQ(result.at("native"), 5.0);
  EXPECT_DOUBLE_EQ(result.at("ratio"), 0.8);
  EXPECT_EQ(result.at("runs").size(), 60U);
  EXPECT_DOUBLE_EQ(result.at("runs").at(0).at("ratio"), 0.8);
  EXPECT_EQ(result.at("resolved"), true);
  EXPECT_EQ(result.at("native_kind"), "coalescing");
}

TEST(JsonReport, WhatWasNotMeasuredIsNull) {
  RowResult row = row_with(0, 1);
  row.comparisons[0].native.reset();
  row.native_problem = "no bare baseline";
  const auto result = parsed({row}).at("results").at(0);
  EXPECT_TRUE(result.at("native").is_null());
  EXPECT_TRUE(result.at("ratio").is_null());
  EXPECT_EQ(result.at("native_problem"), "no bare baseline");
}

TEST(JsonReport, LeavesOutAPercentileWithoutSamples) {
  RowResult row = row_with(60, 1);
  row.comparisons.push_back({.metric = "latency_p99_us", .pairs = {}, .weft = {}, .native = {}, .ratio = {}});
  EXPECT_EQ(parsed({row}).at("results").size(), 1U);
  row.comparisons[1].weft = 9.5;
  EXPECT_EQ(parsed({row}).at("results").size(), 2U);
}

TEST(JsonReport, SurvivesBytesThatAreNoText) {
  RowResult row = row_with(1, 1);
  row.weft_problem = "bad \xff byte";
  EXPECT_NO_THROW((void)parsed({row}));
}

TEST(JsonReport, NamesTheFileItCannotWrite) {
  try {
    write_json_report("/nonexistent/result.json", {.machine = {}, .cores = {}, .seconds = 1}, {});
    FAIL() << "writing into a folder that does not exist succeeded";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/result.json"), std::string::npos) << error.what();
  }
}

TEST(Table, SaysWhenARatioDoesNotCount) {
  EXPECT_EQ(table_row(row_with(60, 0.8)).find("not resolved"), std::string::npos);
  const std::string text = table_row(row_with(10, 0.8));
  EXPECT_NE(text.find("0.800"), std::string::npos) << text;
  EXPECT_NE(text.find("not resolved"), std::string::npos) << text;
}

TEST(Table, ShowsBothContenders) {
  const std::string text = table_row(row_with(60, 0.8));
  EXPECT_NE(text.find("4.00"), std::string::npos) << text;
  EXPECT_NE(text.find("bare sockets, coalescing"), std::string::npos) << text;
  EXPECT_NE(text.find("5.00"), std::string::npos) << text;
}

TEST(Table, KeepsThreeDigitsOfSmallRates) {
  EXPECT_EQ(rate_text(18.2512), "18.25");
  EXPECT_EQ(rate_text(0.4057), "0.406");
  EXPECT_EQ(rate_text(0.0952), "0.0952");
  EXPECT_EQ(rate_text(0.00638), "0.00638");
}

TEST(Table, SaysWhatIsMissingAndWhy) {
  RowResult row = row_with(0, 1);
  row.weft_problem = "the reason of one";
  row.native_problem = "the reason of the other";
  const std::string text = table_row(row);
  EXPECT_NE(text.find("the reason of one"), std::string::npos) << text;
  EXPECT_NE(text.find("the reason of the other"), std::string::npos) << text;
}

TEST(Table, ColumnsLineUp) {
  std::istringstream lines(table_header() + table_row(row_with(60, 0.8)));
  std::string header;
  std::string weft;
  std::string bare;
  std::getline(lines, header);
  std::getline(lines, weft);
  std::getline(lines, bare);
  const std::size_t end = header.find("M msg/s") + 7;
  EXPECT_EQ(weft.substr(end - 4, 4), "4.00") << header << "\n" << weft;
  EXPECT_EQ(bare.substr(end - 4, 4), "5.00") << header << "\n" << bare;
}

}  // namespace
}  // namespace perf
