#include "session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <weft/version.hpp>

#include "site.hpp"

namespace perf::remote {
namespace {

constexpr std::chrono::seconds connect_time{10};
constexpr std::uint64_t usual_warm_up = 1000;
constexpr std::uint64_t warm_up_bytes = 64 * 1024 * 1024;

// "a:1" and "[::1]:1" without the port.
std::string host_of(const std::string& address) { return address.substr(0, address.rfind(':')); }

// Why a connection did not come about: the server's own word, where it gave one, says it best.
std::string reason_of(const weft::Error& error, const weft::Endpoint& endpoint) {
  const auto word = endpoint.peer_private_data();
  if (error.code() == weft::Status::rejected && !word.empty()) {
    return "the server says: " + printable({reinterpret_cast<const char*>(word.data()), word.size()});
  }
  return error.what();
}

std::uint64_t warm_up_of(const ClientOptions& options, const Row& row) {
  if (options.warm_up) return *options.warm_up;
  const std::uint64_t by_size =
      std::max<std::uint64_t>(warm_up_bytes / std::max<std::uint64_t>(row.size, 1), 4);
  return std::min(by_size, usual_warm_up);
}

}  // namespace

Session::Session(const ClientOptions& options) : options_(options) {
  weft::ContextOptions context_options;
  context_options.provider = options.provider;
  context_options.device = options.device;
  context_options.thread_mode = options.threads;
  context_ = weft::Context::open(context_options);
  queue_ = context_.create_completion_queue({.capacity = 16});
  const std::string hello = hello_text({options.threads});
  weft::EndpointOptions endpoint_options;
  endpoint_options.queue = queue_;
  endpoint_options.private_data = bytes_of(hello);
  endpoint_options.timeout = connect_time;
  endpoint_ = context_.connect(options.server, endpoint_options);
  try {
    endpoint_.wait_up(connect_time);
  } catch (const weft::Error& error) {
    std::string reason = reason_of(error, endpoint_);
    if (error.code() == weft::Status::refused) {
      reason += "; is `weft-perf server` running there, and is it that port?";
    } else if (error.code() == weft::Status::timed_out) {
      reason += "; the server may be busy with another client, or a firewall may swallow what is sent there";
    }
    throw std::runtime_error(reason);
  }
  read_answer();
}

Session::~Session() {
  try {
    endpoint_.close(std::chrono::seconds(1));
    weft::Completion entry;
    while (!queue_.wait({&entry, 1}, std::chrono::seconds(1)).empty()) {
      if (entry.operation == weft::Operation::endpoint_ended) return;
    }
  } catch (const weft::Error&) {
    // It is ending anyway.
  }
}

void Session::read_answer() {
  const weft::Attributes& attributes = context_.attributes();
  sides_.provider = attributes.provider;
  sides_.fabric = attributes.fabric;
  sides_.client_device = attributes.device;
  sides_.client_address = endpoint_.local_address();
  sides_.server_address = endpoint_.peer_address();
  sides_.threads = options_.threads == weft::ThreadMode::single ? "single" : "safe";
  try {
    const Json answer = parse_object(endpoint_.peer_private_data());
    constexpr std::uint64_t largest_port = 65'535;
    data_address_ = fmt::format("{}:{}", host_of(options_.server), number_of(answer, "port", largest_port));
    token_ = text_of(answer, "token");
    sides_.server_device = printable(text_of(answer, "device"));
    sides_.server_version = printable(text_of(answer, "weft_version"));
  } catch (const Unintelligible& problem) {
    throw std::runtime_error(
        fmt::format("what answers at {} is no weft-perf server: {}", options_.server, problem.what()));
  }
}

weft::Endpoint Session::connect_row(Site& site, const Row& row) {
  const std::string request = row_text(row, token_, site.key());
  weft::Endpoint control = context_.connect(data_address_, site.control_options(bytes_of(request)));
  site.set_control(control);
  try {
    control.wait_up(connect_time);
  } catch (const weft::Error& error) {
    throw std::runtime_error(reason_of(error, control));
  }
  const std::vector<std::byte> key =
      from_hexadecimal(text_of(parse_object(control.peer_private_data()), "key"));
  std::vector<std::string> texts;
  texts.reserve(row.endpoints);
  for (std::uint32_t lane = 0; lane < row.endpoints; ++lane) {
    texts.push_back(Json{{"weft_perf", wire_version}, {"token", token_}, {"endpoint", lane}}.dump());
    site.set_lane(lane, context_.connect(data_address_, site.lane_options(lane, bytes_of(texts.back()))));
  }
  site.complete_lanes(key);
  return control;
}

Result Session::run(const Row& row) {
  Site site(context_, row, false);
  const weft::Endpoint control = connect_row(site, row);
  Sender sender(site);
  try {
    if (const std::uint64_t operations = warm_up_of(options_, row); operations > 0) {
      (void)run_as_client(site, sender, {.operations = operations, .seconds = 0});
    }
    Result result{row, run_as_client(site, sender, options_.amount)};
    site.say_goodbye();
    return result;
  } catch (const PeerProblem& problem) {
    throw std::runtime_error(fmt::format("the server at {}: {}", options_.server, problem.what()));
  } catch (const std::exception& problem) {
    site.tell_problem(problem.what());
    throw;
  }
}

}  // namespace perf::remote
