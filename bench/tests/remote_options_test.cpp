// The command lines of weft-perf client and server, and what the two tell each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "remote/options.hpp"
#include "remote/wire.hpp"

namespace perf::remote {
namespace {

using Sizes = std::vector<std::uint64_t>;

TEST(RemoteSizes, AreNumbersListsAndRanges) {
  EXPECT_EQ(parse_sizes("8"), Sizes{8});
  EXPECT_EQ(parse_sizes("64,4k"), (Sizes{64, 4096}));
  EXPECT_EQ(parse_sizes("8:64"), (Sizes{8, 16, 32, 64}));
  EXPECT_EQ(parse_sizes("0:3,1M"), (Sizes{0, 1, 2, 3, 1 << 20}));
  EXPECT_EQ(parse_sizes("8:65536").size(), 14U);
}

TEST(RemoteSizes, RefuseTheRest) {
  for (const char* text : {"", "x", "-1", "8:", ":8", "64:8", "8,,9", "2G", "1.5", "99999999999999999999"}) {
    EXPECT_THROW((void)parse_sizes(text), std::invalid_argument) << text;
  }
}

ClientOptions parsed(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "there");
  return parse_client_options(arguments).value();
}

std::string problem_of(std::vector<std::string> arguments) {
  try {
    (void)parsed(std::move(arguments));
    return "accepted";
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(RemoteOptions, AllMeansEveryOperationOfTheContract) {
  const auto rows = parsed({"-o", "all", "--test", "latency"}).rows;
  ASSERT_EQ(rows.size(), all_kinds().size());
  for (const Row& row : rows) EXPECT_EQ(row.size, is_atomic(row.kind) ? 8U : 64U);
}

TEST(RemoteOptions, MeanWhatThoseOfOtherToolsMean) {
  const auto options = parsed({"-o", "write", "-T", "bandwidth", "-s", "1k,2k", "-n", "1000", "-t", "32",
                               "-b", "4", "--endpoints", "3", "--bidirectional", "-e", "-c", "-w", "7"});
  ASSERT_EQ(options.rows.size(), 2U);
  const Row& row = options.rows[1];
  EXPECT_EQ(row.size, 2048U);
  EXPECT_EQ(row.depth, 32U);
  EXPECT_EQ(row.batch, 4U);
  EXPECT_EQ(row.endpoints, 3U);
  EXPECT_TRUE(row.bidirectional && row.events && row.check);
  EXPECT_EQ(options.amount.operations, 1000U);
  EXPECT_EQ(options.warm_up, 7U);
  EXPECT_EQ(options.server, "there:7471");
  EXPECT_DOUBLE_EQ(parsed({"-D", "2.5"}).amount.seconds, 2.5);
}

TEST(RemoteOptions, WrongOnesAreQuotedWithWhatIsAllowed) {
  EXPECT_NE(problem_of({"-o", "sned"}).find("'sned'; the names are: send,"), std::string::npos);
  EXPECT_NE(problem_of({"--test", "speed"}).find("latency, bandwidth, rate"), std::string::npos);
  EXPECT_NE(problem_of({"-n", "-5"}).find("--iterations '-5'"), std::string::npos);
  EXPECT_NE(problem_of({"-n", "5", "-D", "1"}).find("exclude"), std::string::npos);
  EXPECT_NE(problem_of({"-D", "0"}).find("-D 0"), std::string::npos);
  EXPECT_NE(problem_of({"--threads", "both"}).find("'both'"), std::string::npos);
  EXPECT_NE(problem_of({"--bidirectional", "--test", "latency"}).find("one at a time"), std::string::npos);
  EXPECT_NE(problem_of({"-s", "1G", "--test", "bandwidth"}).find("--memory"), std::string::npos);
  EXPECT_NE(problem_of({"-t", "100000"}).find("--depth"), std::string::npos);
  EXPECT_NE(problem_of({"--json", "-", "--csv", "-"}).find("standard output"), std::string::npos);
  EXPECT_NE(problem_of({"--no-such-option"}).find("no-such-option"), std::string::npos);
  EXPECT_THROW((void)parse_client_options({}), std::invalid_argument);
  EXPECT_THROW((void)parse_server_options({"--data-port", "70000"}), std::invalid_argument);
}

TEST(RemoteOptions, TheServersAddressMayBeAnythingListenTakes) {
  EXPECT_EQ(parse_server_options({})->address, ":7471");
  EXPECT_EQ(parse_server_options({"10.0.0.1"})->address, "10.0.0.1:7471");
  EXPECT_EQ(parse_server_options({"[::1]:5"})->address, "[::1]:5");
}

TEST(RemoteWire, ARowComesAcrossAsItWas) {
  const Row row{.kind = Kind::compare_swap,
                .test = remote::Test::rate,
                .size = 8,
                .depth = 512,
                .batch = 64,
                .endpoints = 7,
                .bidirectional = true,
                .events = true,
                .check = true};
  const Json json = parse_object(bytes_of(row_text(row, "token", bytes_of("key"))));
  const Row back = parse_row(json);
  EXPECT_EQ(row_text(back, "token", bytes_of("key")), row_text(row, "token", bytes_of("key")));
  EXPECT_EQ(from_hexadecimal(text_of(json, "key")).size(), 3U);
}

TEST(RemoteWire, NothingThatAnybodySendsIsTakenOnTrust) {
  const std::string good = row_text({}, "t", {});
  // Every byte of a good row set to every kind of wrong value, and every shorter text: an error or a possible
  // row.
  for (std::size_t place = 0; place < good.size(); ++place) {
    for (const char wrong : {'\0', '\xff', '9', '"', '{', '-', 'e'}) {
      std::string text = good;
      text[place] = wrong;
      try {
        require_possible(parse_row(parse_object(bytes_of(text))), 1 << 30);
      } catch (const std::exception&) {
        // as it should be
      }
    }
    EXPECT_THROW((void)parse_object(bytes_of(good.substr(0, place))), Unintelligible);
  }
  for (const char* text : {"{}", "[]", "7", "{\"weft_perf\":\"1\"}", "{\"weft_perf\":1.5}", "\xff\xff"}) {
    EXPECT_THROW((void)parse_hello(bytes_of(text)), Unintelligible) << text;
  }
  EXPECT_THROW((void)parse_object(bytes_of(std::string(100'000, '['))), Unintelligible);
  EXPECT_THROW((void)parse_amount(Json{{"operations", 0}, {"seconds", 0}}), Unintelligible);
  EXPECT_THROW((void)parse_amount(Json{{"operations", -1}, {"seconds", 0}}), Unintelligible);
  EXPECT_THROW((void)from_hexadecimal("abc"), Unintelligible);
  EXPECT_THROW((void)from_hexadecimal("zz"), Unintelligible);
}

TEST(RemoteWire, AnotherVersionIsNamed) {
  try {
    (void)parse_hello(bytes_of("{\"weft_perf\":999,\"threads\":\"safe\"}"));
    FAIL() << "another version was accepted";
  } catch (const Unintelligible& problem) {
    EXPECT_NE(std::string(problem.what()).find("999"), std::string::npos) << problem.what();
  }
}

TEST(RemoteWire, NothingReachesATerminalThatItWouldObey) {
  EXPECT_EQ(printable("a\x1b[31mb\n"), "a?[31mb?");
  EXPECT_LT(printable(std::string(100'000, 'x')).size(), 1000U);
}

TEST(RemoteRow, WhatIsTooMuchIsRefusedWithoutOverflowing) {
  Row row{.test = remote::Test::bandwidth,
          .size = largest_size,
          .depth = largest_depth,
          .endpoints = most_endpoints};
  EXPECT_THROW(require_possible(row, std::uint64_t{1} << 40), std::invalid_argument);
  row = {.test = remote::Test::bandwidth, .size = 1, .depth = 0};
  EXPECT_THROW(require_possible(row, 1 << 30), std::invalid_argument);
  row = {.test = remote::Test::bandwidth, .size = 1, .depth = 1, .batch = 0};
  EXPECT_THROW(require_possible(row, 1 << 30), std::invalid_argument);
}

TEST(RemoteOptions, AnAddressHasItsPortBehindTheBrackets) {
  EXPECT_TRUE(has_port("host:1"));
  EXPECT_TRUE(has_port("[::1]:1"));
  EXPECT_TRUE(has_port(":1"));
  EXPECT_FALSE(has_port("host"));
  EXPECT_FALSE(has_port("[::1]"));
  EXPECT_EQ(parse_server_options({"[::1]"})->address, "[::1]:7471");
}

}  // namespace
}  // namespace perf::remote
