#include "pair.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

namespace instructions {
namespace {

using namespace std::chrono_literals;

weft::Context open(const PairPlan& plan) {
  weft::ContextOptions options;
  options.provider = plan.provider;
  options.thread_mode = plan.threads;
  return weft::Context::open(options);
}

std::string listen_address(const weft::Context& context) {
  const std::string local = context.attributes().local_address;
  if (local.empty() || local == "any") return "127.0.0.1:0";
  return local.find(':') == std::string::npos ? local + ":0" : "[" + local + "]:0";
}

}  // namespace

Pair::Pair(const PairPlan& plan)
    : client_context_(open(plan)),
      server_context_(open(plan)),
      client_queue_(client_context_.create_completion_queue({.capacity = 4 * depth})),
      server_queue_(server_context_.create_completion_queue({.capacity = 4 * depth})),
      client_bytes_(buffer_size),
      server_bytes_(buffer_size),
      client_region_(client_context_.register_memory(client_bytes_, weft::Access::local_write)),
      server_region_(server_context_.register_memory(server_bytes_, weft::Access::local_write |
                                                                        weft::Access::remote_read |
                                                                        weft::Access::remote_write)) {
  weft::EndpointOptions options{.queue = server_queue_, .send_depth = depth, .receive_depth = depth};
  listener_ = server_context_.listen(listen_address(server_context_), {.queue = server_queue_});
  options.queue = client_queue_;
  client_ = client_context_.connect(listener_.address(), options);
  std::array<weft::Completion, 16> entries;
  options.queue = server_queue_;
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  while (server_.id() == 0 || server_.state() != weft::EndpointState::up ||
         client_.state() != weft::EndpointState::up) {
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("the pair did not connect");
    (void)client_queue_.poll(entries);
    for (const weft::Completion& entry : server_queue_.wait(entries, 1ms)) {
      if (entry.operation != weft::Operation::connection_request) continue;
      server_ = listener_.next()->accept(options);
    }
  }
  remote_ = client_.import_memory(server_region_.key());
  settle();
}

bool Pair::drain(weft::CompletionQueue& queue, bool receives) {
  std::array<weft::Completion, 64> entries;
  bool any = false;
  for (const weft::Completion& entry : queue.poll(entries)) {
    any = true;
    if (entry.operation == weft::Operation::endpoint_ended) throw std::runtime_error("the endpoint ended");
    if (receives && entry.operation == weft::Operation::receive) --receives_;
  }
  return any;
}

void Pair::settle() {
  for (int quiet = 0; quiet < 20;) {
    bool any = drain(client_queue_, false);
    any = drain(server_queue_, true) || any;
    quiet = any ? 0 : quiet + 1;
    for (; receives_ < depth; ++receives_) {
      if (server_.receive(server_region_.slice(0, buffer_size), 0) != weft::Status::ok) break;
    }
    if (!any) std::this_thread::sleep_for(100us);
  }
}

void Pair::let_arrive() { std::this_thread::sleep_for(2ms); }

}  // namespace instructions
