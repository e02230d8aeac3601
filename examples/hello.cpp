// The smallest program with two sides.
//   hello listen 0.0.0.0:7471        waits for one peer and prints what it says
//   hello 127.0.0.1:7471 "good day"  connects and says it
#include <array>
#include <chrono>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>

#include "weft/weft.hpp"

using namespace std::chrono_literals;

namespace {

void listen(std::string_view address) {
  auto context = weft::Context::open();  // WEFT_PROVIDER, or the best that runs here
  auto queue = context.create_completion_queue();
  std::array<char, 4096> storage{};
  auto region = context.register_memory(storage, weft::Access::local_write);
  auto listener = context.listen(address, {.queue = queue});
  std::cout << "listening at " << listener.address() << std::endl;

  weft::Endpoint endpoint;
  std::array<weft::Completion, 8> entries;
  while (true) {
    for (const auto& entry : queue.wait(entries, -1s)) {
      if (entry.operation == weft::Operation::connection_request) {
        if (endpoint) continue;  // one peer is enough; dropping the request rejects it
        auto request = listener.next();
        endpoint = request->prepare({.queue = queue});
        // Posted before the peer can send, so that its first word has a place.
        if (auto status = endpoint.receive(region.whole(), 1); status != weft::Status::ok) {
          throw weft::Error(status, "posting the receive");
        }
        request->accept();
      } else if (entry.operation == weft::Operation::receive && entry.status == weft::Status::ok) {
        std::cout << endpoint.peer_address() << " says: " << std::string_view(storage.data(), entry.bytes)
                  << std::endl;
      } else if (entry.operation == weft::Operation::endpoint_ended) {
        std::cout << "the connection ended: " << weft::to_string(entry.status) << std::endl;
        return;
      }
    }
  }
}

void say(std::string_view address, std::string text) {
  auto context = weft::Context::open();
  auto queue = context.create_completion_queue();
  auto region = context.register_memory(text, weft::Access::none);
  auto endpoint = context.connect(address, {.queue = queue}).wait_up(5s);
  if (auto status = endpoint.send(region.whole(), 1); status != weft::Status::ok) {
    throw weft::Error(status, "posting the send");
  }
  // Leaving the scope closes gracefully: what was accepted is delivered first (ERR-5).
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count == 3 && std::string_view(arguments[1]) == "listen") {
      listen(arguments[2]);
    } else if (count == 3) {
      say(arguments[1], arguments[2]);
    } else {
      std::cerr << "usage: hello listen ADDRESS | hello ADDRESS TEXT\n";
      return 2;
    }
    return 0;
  } catch (const weft::Error& error) {
    std::cerr << "hello: " << error.what() << '\n';
    return 1;
  }
}
