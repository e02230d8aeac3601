// Memory of one process, used by another without any call of its owner.
//   one_sided listen 0.0.0.0:7471        offers a counter and a line of text, and does nothing more
//   one_sided 127.0.0.1:7471 "good day"  writes the text, counts itself, and reads both back
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <string_view>

#include "weft/weft.hpp"

using namespace std::chrono_literals;

namespace {

struct Shared {
  std::uint64_t visits = 0;
  std::array<char, 248> text{};
};

void require(weft::Status status, const char* what) {
  if (status != weft::Status::ok) throw weft::Error(status, what);
}

void listen(std::string_view address) {
  auto context = weft::Context::open();
  auto queue = context.create_completion_queue();
  Shared shared;
  auto region = context.register_memory(
      &shared, sizeof shared,
      weft::Access::remote_read | weft::Access::remote_write | weft::Access::remote_atomic);
  auto listener = context.listen(address, {.queue = queue});
  std::cout << "listening at " << listener.address() << std::endl;

  weft::Endpoint endpoint;
  std::array<weft::Completion, 8> entries;
  while (true) {
    // From here the peer works on `shared` by itself; this side only waits for its end.
    for (const auto& entry : queue.wait(entries, -1s)) {
      if (entry.operation == weft::Operation::connection_request) {
        auto request = listener.next();
        if (endpoint || !request) continue;  // one peer is enough; dropping the request rejects it
        endpoint = request->accept({.queue = queue, .private_data = region.key()});
      } else if (entry.operation == weft::Operation::endpoint_ended) {
        std::cout << "visits: " << shared.visits << ", the last one wrote: " << shared.text.data()
                  << std::endl;
        return;
      }
    }
  }
}

void visit(std::string_view address, std::string_view text) {
  auto context = weft::Context::open();
  auto queue = context.create_completion_queue();
  Shared seen;
  std::uint64_t before = 0;
  auto seen_region = context.register_memory(&seen, sizeof seen, weft::Access::local_write);
  auto before_region = context.register_memory(&before, sizeof before, weft::Access::local_write);
  auto text_region = context.register_memory(text.data(), text.size());
  auto endpoint = context.connect(address, {.queue = queue}).wait_up(5s);
  auto remote = endpoint.import_memory(endpoint.peer_private_data());

  require(endpoint.write(text_region.whole(), remote.at(offsetof(Shared, text)), 1), "posting the write");
  require(endpoint.fetch_add(before_region.whole(), remote.at(offsetof(Shared, visits)), 1, 2),
          "posting the atomic");
  // Without the fence the read could overtake the others.
  require(endpoint.read(seen_region.whole(), remote.at(0), 3, weft::Flags::fence), "posting the read");

  std::array<weft::Completion, 8> entries;
  for (int done = 0; done < 3;) {
    for (const auto& entry : queue.wait(entries, 10s)) {
      require(entry.status, "an operation failed");
      ++done;
    }
  }
  std::cout << before << " came before, the text there is now: " << seen.text.data() << std::endl;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    if (count == 3 && std::string_view(arguments[1]) == "listen") {
      listen(arguments[2]);
    } else if (count == 3 && std::strlen(arguments[2]) < sizeof(Shared::text)) {
      visit(arguments[1], arguments[2]);
    } else {
      std::cerr << "usage: one_sided listen ADDRESS | one_sided ADDRESS TEXT (up to 247 characters)\n";
      return 2;
    }
    return 0;
  } catch (const weft::Error& error) {
    std::cerr << "one_sided: " << error.what() << '\n';
    return 1;
  }
}
