// weft-perf client and server as programs, over tcp on this machine: whole rows, and everything that may go
// wrong.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <weft/weft.hpp>

#include "perf_programs.hpp"
#include "remote/wire.hpp"

namespace perf::remote {
namespace {

using namespace std::chrono_literals;

// The rows of `-o all` with these options: complete, in the order asked for, with figures that can be.
void expect_all_operations(const std::string& options, std::size_t tests,
                           const std::string& provider = "tcp") {
  SCOPED_TRACE(options);
  Server server({"--once"}, provider);
  const Output output = run("client " + server.address() + " -o all -w 5 -n 40 --check --json - --provider " +
                            provider + " " + options);
  ASSERT_EQ(output.status, 0) << output.text;
  const auto report = nlohmann::json::parse(output.text, nullptr, false);
  ASSERT_TRUE(report.is_object()) << output.text;
  ASSERT_EQ(report.at("results").size(), all_kinds().size() * tests);
  for (std::size_t i = 0; i < report["results"].size(); ++i) {
    const auto& row = report["results"][i];
    EXPECT_EQ(row.at("operation"), to_string(all_kinds()[i % all_kinds().size()]));
    EXPECT_GE(row.at("operations"), 40) << row;
    EXPECT_GT(row.at("operations_per_second"), 0) << row;
    if (row.at("test") != "latency") continue;
    const auto& latency = row.at("latency_us");
    EXPECT_GT(latency.at("p50"), 0) << row;
    EXPECT_LE(latency.at("p50"), latency.at("p99.9")) << row;
    EXPECT_LE(latency.at("p99.9"), latency.at("max")) << row;
    std::uint64_t counted = 0;
    for (const auto& bucket : latency.at("histogram")) counted += bucket.at("count").get<std::uint64_t>();
    EXPECT_EQ(counted, row.at("operations"));
  }
  EXPECT_EQ(server.exit_status(), 0);
}

TEST(WeftPerfClient, RunsEveryOperationPolling) { expect_all_operations("", 3); }
TEST(WeftPerfClient, RunsEveryOperationSleeping) { expect_all_operations("--events", 3); }
TEST(WeftPerfClient, RunsEveryOperationInThreadModeSingle) {
  expect_all_operations("--threads single --events", 3);
}
TEST(WeftPerfClient, RunsEveryOperationBothWays) { expect_all_operations("--bidirectional --events", 2); }
TEST(WeftPerfClient, RunsEveryOperationOverManyEndpoints) {
  expect_all_operations("--endpoints 20 --events -t 8 -b 4", 3);
}
// As hard on it as the contract allows, and with whatever it does wrong told.
TEST(WeftPerfClient, RunsEveryOperationOverWhatTheContractAllows) {
  expect_all_operations("--events --test bandwidth,rate --endpoints 3", 2, "strict+tcp");
  expect_all_operations("--events --bidirectional", 2, "strict+tcp");
}
TEST(WeftPerfClient, DoesNothingWrong) {
  ::setenv("WEFT_CHECK_ACTION", "abort", 1);
  expect_all_operations("--events", 3, "check+tcp");
  ::unsetenv("WEFT_CHECK_ACTION");
}

TEST(WeftPerfClient, RunsOddSizes) {
  Server server({"--once"});
  const Output output = run("client " + server.address() +
                            " -o all -s 0:3,77,70001 -T bandwidth,latency -e -c -w 5 -n 40 --csv -");
  EXPECT_EQ(output.status, 0) << output.text;
  // A heading; for both tests six sizes of six operations, and the one of two atomics.
  EXPECT_EQ(std::count(output.text.begin(), output.text.end(), '\n'), 1 + 2 * (6 * 6 + 2)) << output.text;
}

TEST(WeftPerfClient, TimeTableHistogramAndCommas) {
  Server server;
  const Output table = run("client " + server.address() + " --test latency -e -D 0.05 --histogram");
  EXPECT_EQ(table.status, 0) << table.text;
  for (const char* word : {"p50", "p99.9", "max us", "us and up", "#"}) {
    EXPECT_NE(table.text.find(word), std::string::npos) << word << " is missing in:\n" << table.text;
  }
  // The same server serves the next one.
  const Output commas = run("client " + server.address() + " --test rate -e -D 0.05 -s 8,16 --csv -");
  EXPECT_EQ(commas.status, 0) << commas.text;
  EXPECT_EQ(std::count(commas.text.begin(), commas.text.end(), '\n'), 3) << commas.text;
  EXPECT_NE(commas.text.find("\ntcp,sockets,safe,send,rate,8,512,64,1,0,1,0,"), std::string::npos)
      << commas.text;
}

TEST(WeftPerfClient, SaysWhatIsWrongAndWhatToDo) {
  const Output nobody = run("client 127.0.0.1:1");
  EXPECT_EQ(nobody.status, 1);
  EXPECT_NE(nobody.text.find("is `weft-perf server` running there"), std::string::npos) << nobody.text;
  const Output wrong = run("client 127.0.0.1:1 -o sned");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.text.find("'sned'"), std::string::npos) << wrong.text;
  const Output file = run("client 127.0.0.1:1 --json /nonexistent/x");
  EXPECT_NE(file.text.find("/nonexistent/x"), std::string::npos) << file.text;
}

TEST(WeftPerfClient, TheServersMemoryIsItsOwn) {
  Server server({"--memory", "1"});
  const Output output = run("client " + server.address() + " --test bandwidth -s 1M");
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.text.find("the server says: "), std::string::npos) << output.text;
  EXPECT_NE(output.text.find("allowed are 1 MiB"), std::string::npos) << output.text;
}

TEST(WeftPerfClient, AServerKilledInMidRunIsAClearError) {
  Server server;
  Output output;
  std::thread client(
      [&] { output = run("client " + server.address() + " -o write --test bandwidth -e -D 60"); });
  EXPECT_NE(server.line_with("write bandwidth"), "");
  std::this_thread::sleep_for(200ms);
  server.stop(SIGKILL);
  client.join();
  EXPECT_EQ(output.status, 1);
  EXPECT_NE(output.text.find("write bandwidth of 65536 bytes: the server at " + server.address()),
            std::string::npos)
      << output.text;
}

// What a connection with that private data is told.
std::string answer_to(const std::string& address, std::span<const std::byte> word) {
  weft::ContextOptions options;
  options.provider = "tcp";
  auto context = weft::Context::open(options);
  auto queue = context.create_completion_queue();
  auto endpoint = context.connect(address, {.queue = queue, .private_data = word});
  try {
    endpoint.wait_up(20s);
    return "accepted";
  } catch (const weft::Error& error) {
    EXPECT_EQ(error.code(), weft::Status::rejected) << error.what();
  }
  const auto answer = endpoint.peer_private_data();
  return {reinterpret_cast<const char*>(answer.data()), answer.size()};
}

TEST(WeftPerfServer, StrangersAreToldWhyAndTheNextClientIsServed) {
  Server server({"--once"});
  const std::string another = "{\"weft_perf\":999,\"threads\":\"safe\"}";
  EXPECT_NE(answer_to(server.address(), bytes_of(another)).find("999"), std::string::npos);
  EXPECT_NE(answer_to(server.address(), bytes_of("\xff\0garbage")).find("not of weft-perf"),
            std::string::npos);
  EXPECT_NE(answer_to(server.address(), {}).find("not of weft-perf"), std::string::npos);
  // One that is nothing of weft at all.
  const int raw = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(static_cast<std::uint16_t>(server.port()));
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(raw, reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
  const std::string garbage(5000, 'g');
  EXPECT_GT(::send(raw, garbage.data(), garbage.size(), MSG_NOSIGNAL), 0);
  const Output output = run("client " + server.address() + " --test latency -e -n 10");
  EXPECT_EQ(output.status, 0) << output.text;
  EXPECT_EQ(server.exit_status(), 0);
  ::close(raw);
}

// A client of the right version that then asks for what cannot be, or leaves in the middle.
TEST(WeftPerfServer, ARowThatCannotBeIsRefusedAndAClientThatLeavesIsForgotten) {
  Server server;
  {
    weft::ContextOptions options;
    options.provider = "tcp";
    auto context = weft::Context::open(options);
    auto queue = context.create_completion_queue();
    const std::string hello = hello_text({});
    auto session =
        context.connect(server.address(), {.queue = queue, .private_data = bytes_of(hello)}).wait_up(20s);
    const Json answer = parse_object(session.peer_private_data());
    const std::string data = "127.0.0.1:" + std::to_string(number_of(answer, "port", 65'535));
    const std::string token = text_of(answer, "token");
    Row huge{.test = remote::Test::bandwidth, .size = largest_size, .depth = largest_depth};
    EXPECT_NE(answer_to(data, bytes_of(row_text(huge, token, {}))).find("memory"), std::string::npos);
    EXPECT_NE(answer_to(data, bytes_of(row_text({}, "another token", {}))).find("another client's"),
              std::string::npos);
    EXPECT_NE(answer_to(data, bytes_of(std::string(900, '{'))).find("not of weft-perf"), std::string::npos);
    // A row that is accepted, and whose endpoints never come.
    const std::string row = row_text({}, token, {});
    auto control = context.connect(data, {.queue = queue, .private_data = bytes_of(row)}).wait_up(20s);
  }
  EXPECT_NE(server.line_with("broken off"), "");
  const Output output = run("client " + server.address() + " --test latency -e -n 10");
  EXPECT_EQ(output.status, 0) << output.text;
}

}  // namespace
}  // namespace perf::remote
