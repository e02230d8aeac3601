// Any number of clients on one completion queue and one receive queue, in the program's own epoll loop.
//   epoll_server listen 0.0.0.0:7471          answers in capitals, until it is told to stop (SIGINT, SIGTERM)
//   epoll_server 127.0.0.1:7471 clients 100   that many connections, a message on each
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <csignal>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/weft.hpp"

using namespace std::chrono_literals;

namespace {

constexpr std::size_t size = 256;   // of a message
constexpr std::size_t places = 64;  // fewer than an endpoint's send depth: posting never finds it full
void require(weft::Status status, const char* what) {
  if (status != weft::Status::ok) throw weft::Error(status, what);
}

void serve(std::string_view address) {
  auto context = weft::Context::open();
  auto queue = context.create_completion_queue({.capacity = 4 * places});
  std::vector<char> storage(size * places);
  auto region = context.register_memory(storage, weft::Access::local_write);
  auto receives = context.create_receive_queue({.queue = queue, .depth = places});
  const auto post = [&](std::uint64_t place) {
    require(receives.receive(region.slice(place * size, size), place), "posting a receive");
  };
  for (std::size_t place = 0; place < places; ++place) post(place);
  auto listener = context.listen(address, {.queue = queue});
  std::cout << "listening at " << listener.address() << std::endl;

  std::size_t answered = 0;
  std::map<std::uint32_t, weft::Endpoint> clients;
  const auto handle = [&](const weft::Completion& entry) {
    if (entry.operation == weft::Operation::connection_request) {
      try {
        auto client = listener.next().value().accept({.queue = queue, .shared_receives = receives});
        clients.emplace(client.id(), client);
      } catch (const std::exception&) {  // it gave up meanwhile
      }
    } else if (entry.operation == weft::Operation::receive && entry.status == weft::Status::ok) {
      const auto text = std::span(storage).subspan(entry.context * size, entry.bytes);
      std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::toupper(letter); });
      const auto answer = region.slice(entry.context * size, entry.bytes);
      if (clients.at(entry.endpoint_id).send(answer, entry.context) != weft::Status::ok) post(entry.context);
    } else if (entry.operation == weft::Operation::receive || entry.operation == weft::Operation::send) {
      if (entry.status == weft::Status::ok) ++answered;  // else the client is gone; its place is free anyway
      post(entry.context);
    } else if (entry.operation == weft::Operation::endpoint_ended) {
      clients.erase(entry.endpoint_id);
    }
  };

  sigset_t wanted_signals;
  sigemptyset(&wanted_signals);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&wanted_signals, signal);
  sigprocmask(SIG_BLOCK, &wanted_signals, nullptr);
  const int signals = signalfd(-1, &wanted_signals, SFD_CLOEXEC);
  const int loop = epoll_create1(EPOLL_CLOEXEC);
  for (const int descriptor : {queue.descriptor(), signals}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
    epoll_ctl(loop, EPOLL_CTL_ADD, descriptor, &event);
  }
  std::array<weft::Completion, 32> entries;
  for (epoll_event happened{}; happened.data.fd != signals;) {
    do {  // woken: first poll, which moves what has come; then arm, which refuses while anything is left
      for (const auto& entry : queue.poll(entries)) handle(entry);
    } while (!queue.arm());
    epoll_wait(loop, &happened, 1, -1);
  }
  std::cout << answered << " messages answered" << std::endl;
}

void try_clients(std::string_view address, std::size_t number) {
  auto context = weft::Context::open();
  auto queue = context.create_completion_queue({.capacity = static_cast<std::uint32_t>(2 * number)});
  std::vector<char> storage(size * number);
  auto region = context.register_memory(storage, weft::Access::local_write);
  std::vector<weft::Endpoint> endpoints;
  for (std::size_t i = 0; i < number; ++i) {
    endpoints.push_back(context.connect(address, {.queue = queue, .user_value = i}));
    require(endpoints[i].receive(region.slice(i * size, size), i), "posting a receive");
  }
  std::size_t answered = 0;
  for (weft::Completion entry; answered < number && !queue.wait({&entry, 1}, 10s).empty();) {
    require(entry.status, "a connection failed");
    if (entry.operation == weft::Operation::connect) {
      const std::string text = "i am client " + std::to_string(entry.user_value);
      const auto message = weft::Segment::inline_bytes(text.data(), text.size());
      require(endpoints[entry.user_value].send(message, 0, weft::Flags::inline_data), "posting a send");
    } else if (entry.operation == weft::Operation::receive && storage[entry.context * size] == 'I') {
      ++answered;
    }
  }
  std::cout << answered << " clients got their answers" << std::endl;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count == 3 && std::string_view(arguments[1]) == "listen") return serve(arguments[2]), 0;
  if (count == 4) return try_clients(arguments[1], std::stoul(arguments[3])), 0;
  return std::cerr << "usage: epoll_server listen ADDRESS | epoll_server ADDRESS clients NUMBER\n", 2;
} catch (const std::exception& error) {
  std::cerr << "epoll_server: " << error.what() << '\n';
  return 1;
}
