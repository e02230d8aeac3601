// Two connected endpoints, and waiting for completions, for tests of the core.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "weft/weft.hpp"

namespace weft::test {

using namespace std::chrono_literals;

// The next completion of the kind, within 5 s; others met on the way are dropped into `others`.
inline Completion next(CompletionQueue& queue, Operation operation, std::vector<Completion>* others = nullptr,
                       std::chrono::milliseconds limit = 5s) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::array<Completion, 1> entry;
  while (std::chrono::steady_clock::now() < deadline) {
    for (const Completion& completion : queue.wait(entry, deadline - std::chrono::steady_clock::now())) {
      if (completion.operation == operation) return completion;
      if (others != nullptr) others->push_back(completion);
    }
  }
  ADD_FAILURE() << "no " << to_string(operation) << " came within " << limit.count() << " ms";
  Completion none;
  none.status = Status::system_error;
  return none;
}

// What is in the queue now.
inline std::vector<Completion> drain(CompletionQueue& queue) {
  std::vector<Completion> all;
  std::array<Completion, 16> entries;
  for (auto got = queue.poll(entries); !got.empty(); got = queue.poll(entries)) {
    all.insert(all.end(), got.begin(), got.end());
  }
  return all;
}

template <typename Condition>
bool eventually(Condition condition, std::chrono::milliseconds limit = 5s) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

inline EndpointOptions with_queue(const CompletionQueue& queue, std::uint64_t user_value = 0) {
  EndpointOptions options;
  options.queue = queue;
  options.user_value = user_value;
  return options;
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A listener on loopback in one context, a dialer in another (or the same), both up.
struct Pair {
  CompletionQueue server_queue;
  CompletionQueue client_queue;
  Listener listener;
  Endpoint server;
  Endpoint client;

  Pair(Context server_context, Context client_context) {
    server_queue = server_context.create_completion_queue();
    client_queue = client_context.create_completion_queue();
    ListenOptions listen;
    listen.queue = server_queue;
    listener = server_context.listen("127.0.0.1:0", listen);
    client = client_context.connect(listener.address(), with_queue(client_queue, 1));
    (void)next(server_queue, Operation::connection_request);
    auto request = listener.next();
    if (!request) {
      ADD_FAILURE() << "no arrival";
      return;
    }
    server = request->accept(with_queue(server_queue, 2));
    server.wait_up(5s);
    client.wait_up(5s);
  }
};

}  // namespace weft::test
