#include "server_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>
#include <weft/version.hpp>

#include "phase.hpp"
#include "sender.hpp"

namespace perf::remote {
namespace {

constexpr std::chrono::seconds connect_time{10};
constexpr std::chrono::milliseconds look_time{20};
// A client that asks for nothing keeps others waiting.
constexpr std::chrono::seconds longest_silence{30};
constexpr std::uint32_t backlog = 16'384;

weft::Context open(const ServerOptions& options, weft::ThreadMode threads) {
  weft::ContextOptions context_options;
  context_options.provider = options.provider;
  context_options.device = options.device;
  context_options.thread_mode = threads;
  return weft::Context::open(context_options);
}

// What was passed over need not be told once more for each client.
weft::Context open_again(const ServerOptions& options, weft::ThreadMode threads) {
  const weft::LogLevel level = weft::log_level();
  weft::set_log_level(std::max(level, weft::LogLevel::error));
  weft::Context context = open(options, threads);
  weft::set_log_level(level);
  return context;
}

std::string random_token() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", source(), source(), source(), source());
}

}  // namespace

Arrivals::Arrivals(weft::Context& context, const std::string& address)
    : queue_(context.create_completion_queue()),
      listener_(context.listen(address, {.queue = queue_, .backlog = backlog})) {}

std::optional<weft::ConnectionRequest> Arrivals::next(std::chrono::milliseconds time) {
  if (auto request = listener_.next()) return request;
  weft::Completion entry;
  (void)queue_.wait({&entry, 1}, time);
  return listener_.next();
}

void refuse(weft::ConnectionRequest& request, const std::string& reason) {
  const std::string word = printable(reason);
  request.reject(bytes_of(word));
}

ServerSession::ServerSession(const ServerOptions& options, weft::Context& context, const Hello& hello,
                             weft::ConnectionRequest request)
    : options_(options),
      context_(open_again(options, hello.threads)),
      arrivals_(context_, fmt::format("{}:{}", options.address.substr(0, options.address.rfind(':')),
                                      options.data_port)),
      token_(random_token()),
      queue_(context.create_completion_queue({.capacity = 16})) {
  const std::string answer = Json{
      {"weft_perf", wire_version},
      {"port", arrivals_.port()},
      {"token", token_},
      {"device", context_.attributes().device},
      {"weft_version",
       weft::version()}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  weft::EndpointOptions endpoint_options;
  endpoint_options.queue = queue_;
  endpoint_options.private_data = bytes_of(answer);
  endpoint_options.timeout = connect_time;
  client_ = request.accept(endpoint_options);
  client_.wait_up(connect_time);
}

bool ServerSession::client_left() {
  weft::Completion entry;
  for (;;) {
    const weft::Polled polled = queue_.poll({&entry, 1});
    if (polled.empty()) return false;
    if (entry.operation != weft::Operation::endpoint_ended) continue;
    if (entry.status == weft::Status::disconnected) return true;
    throw PeerProblem(printable(client_.describe_end()));
  }
}

bool ServerSession::is_ours(const Json& word) const { return text_of(word, "token") == token_; }

void ServerSession::run() {
  auto last_heard = std::chrono::steady_clock::now();
  while (!client_left()) {
    auto request = arrivals_.next(look_time);
    if (request) {
      take_request(std::move(*request));
      last_heard = std::chrono::steady_clock::now();
    } else if (std::chrono::steady_clock::now() - last_heard > longest_silence) {
      throw PeerProblem(
          fmt::format("it asked for nothing for {} s and has to leave", longest_silence.count()));
    }
  }
}

void ServerSession::take_request(weft::ConnectionRequest request) {
  Row row;
  std::vector<std::byte> key;
  try {
    const Json word = parse_object(request.private_data());
    if (!is_ours(word)) throw Unintelligible("this is another client's");
    row = parse_row(word);
    key = from_hexadecimal(text_of(word, "key"));
    require_possible(row, options_.memory_limit);
  } catch (const std::exception& problem) {
    refuse(request, problem.what());
    fmt::print("  refused: {}\n", problem.what());
    return;
  }
  fmt::print("  {} {}, {} bytes, depth {}, batch {}, {} endpoints{}{}{}\n", to_string(row.kind),
             to_string(row.test), row.size, row.depth, row.batch, row.endpoints,
             row.bidirectional ? ", both ways" : "", row.events ? ", sleeping" : "",
             row.check ? ", looking at every byte" : "");
  std::fflush(stdout);
  serve_row(row, key, request);
}

void ServerSession::serve_row(const Row& row, std::span<const std::byte> client_key,
                              weft::ConnectionRequest& request) {
  std::unique_ptr<Site> made;
  weft::Endpoint control;
  try {
    made = std::make_unique<Site>(context_, row, true);
    const std::string answer = Json{{"weft_perf", wire_version}, {"key", hexadecimal(made->key())}}.dump();
    control = request.prepare(made->control_options(bytes_of(answer)));
    made->set_control(control);
    request.accept();
  } catch (const std::exception& problem) {
    refuse(request, problem.what());  // what the row takes cannot be had here
    fmt::print("  refused: {}\n", problem.what());
    return;
  }
  Site& site = *made;
  try {
    weft::Endpoint(control).wait_up(connect_time);
    take_lanes(site);
    site.complete_lanes(client_key);
    Sender sender(site);
    for (;;) {
      const Json word = site.await(longest_silence);
      if (word.contains("end")) return;
      if (!word.contains("go")) throw Unintelligible("neither a start nor the end of the row was said");
      run_as_server(site, sender, parse_amount(word["go"]), options_.patience);
    }
  } catch (const PeerProblem&) {
    throw;
  } catch (const std::exception& problem) {
    site.tell_problem(problem.what());
    throw;
  }
}

void ServerSession::take_lanes(Site& site) {
  const auto deadline = std::chrono::steady_clock::now() + connect_time;
  for (std::uint32_t missing = site.row().endpoints; missing > 0;) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw PeerProblem(fmt::format("{} of its {} endpoints did not come", missing, site.row().endpoints));
    }
    if (client_left()) throw PeerProblem("it left while connecting");
    auto request = arrivals_.next(look_time);
    if (!request) continue;
    try {
      const Json word = parse_object(request->private_data());
      const std::uint64_t lane = number_of(word, "endpoint", site.row().endpoints - 1);
      if (!is_ours(word) || site.lanes()[lane].endpoint)
        throw Unintelligible("this endpoint is not expected");
      site.set_lane(static_cast<std::uint32_t>(lane),
                    request->prepare(site.lane_options(static_cast<std::uint32_t>(lane), {})));
      request->accept();
      --missing;
    } catch (const Unintelligible& problem) {
      refuse(*request, problem.what());
    }
  }
}

}  // namespace perf::remote
