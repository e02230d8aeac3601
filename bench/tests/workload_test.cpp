#include "workload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace perf {
namespace {

TEST(ParseSize, TakesTheUsualUnits) {
  EXPECT_EQ(parse_size("64"), 64U);
  EXPECT_EQ(parse_size("64B"), 64U);
  EXPECT_EQ(parse_size("4k"), 4096U);
  EXPECT_EQ(parse_size("64KiB"), 65536U);
  EXPECT_EQ(parse_size("1M"), 1048576U);
  EXPECT_EQ(parse_size("1024M"), std::size_t{1} << 30);
}

TEST(ParseSize, RefusesTheRest) {
  for (const char* text :
       {"", "k", "-1", "7", "0", "64 k", "1G", "0x40", "1025M", "99999999999999999999999"}) {
    EXPECT_THROW((void)parse_size(text), std::invalid_argument) << text;
  }
}

TEST(SizeText, IsReadBackAsTheSame) {
  for (const std::size_t size : {8UL, 64UL, 1000UL, 4096UL, 65536UL, 1048576UL, 1048577UL}) {
    std::string text = size_text(size);
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    EXPECT_EQ(parse_size(text), size) << text;
  }
}

TEST(SelectWorkloads, DefaultHasEveryMetricAndBothRateBaselines) {
  const auto rows = select_workloads({}, {});
  const auto count = [&](auto test) { return std::count_if(rows.begin(), rows.end(), test); };
  EXPECT_EQ(count([](const Workload& row) { return row.metric == Metric::latency; }), 2);
  EXPECT_EQ(count([](const Workload& row) { return row.metric == Metric::bandwidth; }),
            9);  // 1 MiB sends and both writes twice
  EXPECT_EQ(count([](const Workload& row) { return row.native_kind == NativeKind::coalescing; }), 2);
  const auto against_single_calls = [](const Workload& row) {
    return row.metric == Metric::rate && row.native_kind == NativeKind::one_call_per_message;
  };
  EXPECT_EQ(count(against_single_calls), 1);
}

TEST(WithoutPieces, RowsThatOnlyDifferedInPiecesAreOne) {
  const std::vector<Workload> rows = select_workloads({}, {});
  const std::vector<Workload> messages = without_pieces(rows);
  const auto count = [](const std::vector<Workload>& in, Metric metric) {
    return std::count_if(in.begin(), in.end(), [&](const Workload& row) { return row.metric == metric; });
  };
  EXPECT_EQ(count(messages, Metric::bandwidth), 6);  // sends, writes and reads of 64 KiB and of 1 MiB
  EXPECT_EQ(count(messages, Metric::rate), count(rows, Metric::rate));
  EXPECT_EQ(count(messages, Metric::latency), count(rows, Metric::latency));
  for (const Workload& row : messages) {
    EXPECT_NE(row.native_kind, NativeKind::pieces);
    EXPECT_NE(row.native_kind, NativeKind::acknowledged);
  }
}

TEST(SelectWorkloads, ANamePicksItsRows) {
  for (const Workload& row : select_workloads({"read"}, {})) EXPECT_EQ(row.operation, Operation::read);
  for (const Workload& row : select_workloads({"latency"}, {})) EXPECT_EQ(row.metric, Metric::latency);
  const auto completion = select_workloads({"write-completion"}, {});
  ASSERT_EQ(completion.size(), 1U);
  EXPECT_EQ(completion[0].level, Level::completed);
}

TEST(SelectWorkloads, EveryNameItOffersPicksSomething) {
  for (const std::string& name : operation_names())
    EXPECT_FALSE(select_workloads({name}, {}).empty()) << name;
}

TEST(SelectWorkloads, AnUnknownNameIsQuotedWithTheKnownOnes) {
  try {
    (void)select_workloads({"sned"}, {});
    FAIL() << "an unknown operation was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("'sned'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("send-latency"), std::string::npos);
  }
}

TEST(SelectWorkloads, SizesApplyWhereTheyMakeSense) {
  for (const Workload& row : select_workloads({}, {8, 1048576})) {
    if (row.metric != Metric::latency) {
      EXPECT_EQ(row.size, row.metric == Metric::rate ? 8U : 1048576U);
    }
  }
}

}  // namespace
}  // namespace perf
