// A client that connects, starts a row and never brings it to its end: others must get their turn all the
// same.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <weft/weft.hpp>

#include "perf_programs.hpp"
#include "remote/site.hpp"
#include "remote/wire.hpp"

namespace perf::remote {
namespace {

using namespace std::chrono_literals;

// A client whose row runs at the server, and who does nothing more about it.
class EndlessClient {
 public:
  EndlessClient(const std::string& server, const Row& row, const Amount& amount)
      : context_(weft::Context::open(options())), queue_(context_.create_completion_queue()) {
    const std::string hello = hello_text({});
    session_ = context_.connect(server, {.queue = queue_, .private_data = bytes_of(hello)}).wait_up(20s);
    const Json answer = parse_object(session_.peer_private_data());
    const std::string data = "127.0.0.1:" + std::to_string(number_of(answer, "port", 65'535));
    const std::string token = text_of(answer, "token");

    site_.emplace(context_, row, false);
    const std::string request = row_text(row, token, site_->key());
    auto control = context_.connect(data, site_->control_options(bytes_of(request)));
    site_->set_control(control);
    control.wait_up(20s);
    const Json lane = {{"weft_perf", wire_version}, {"token", token}, {"endpoint", 0}};
    const std::string lane_text = lane.dump();
    site_->set_lane(0, context_.connect(data, site_->lane_options(0, bytes_of(lane_text))));
    site_->complete_lanes(from_hexadecimal(text_of(parse_object(control.peer_private_data()), "key")));
    site_->tell({{"weft_perf", wire_version}, {"go", amount_json(amount)}});
    EXPECT_TRUE(site_->await(20s).contains("ready"));
  }

 private:
  static weft::ContextOptions options() {
    weft::ContextOptions options;
    options.provider = "tcp";
    return options;
  }

  weft::Context context_;
  weft::CompletionQueue queue_;
  weft::Endpoint session_;
  std::optional<Site> site_;
};

void expect_next_client_served(const Row& row) {
  Server server({"--patience", "1"});
  const EndlessClient endless(server.address(), row, {.operations = 0, .seconds = 0.1});
  const std::string line = server.line_with("broken off");
  EXPECT_NE(line.find("it did not bring the row to its end within 2 s"), std::string::npos) << line;
  const Output output = run("client " + server.address() + " --test latency -e -n 10");
  EXPECT_EQ(output.status, 0) << output.text;
}

TEST(WeftPerfServer, AStreamThatDoesNotEndIsEndedWhilePolling) {
  expect_next_client_served({.test = remote::Test::rate, .size = 8, .depth = 4});
}
TEST(WeftPerfServer, APingPongThatDoesNotEndIsEndedWhileSleeping) {
  expect_next_client_served({.test = remote::Test::latency, .size = 8, .events = true});
}

}  // namespace
}  // namespace perf::remote
