// A program on the installed package: sends itself a message, and checks that it uses the library and the
// plug-in it was installed with.
//   consumer PATH_OF_THE_TCP_PLUGIN
#include <array>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

#include "weft/weft.hpp"

using namespace std::chrono_literals;

namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

void check_installation(const char* plugin) {
  const std::string built = std::to_string(weft::version_major) + '.' + std::to_string(weft::version_minor) +
                            '.' + std::to_string(weft::version_patch);
  require(weft::version() == built, "built with weft " + built + ", running " + std::string(weft::version()));
  for (const weft::ProviderReport& provider : weft::list_providers()) {
    if (provider.name != "tcp") continue;
    require(std::filesystem::equivalent(provider.path, plugin), "tcp was loaded from " + provider.path);
    return;
  }
  require(false, "there is no provider tcp");
}

void send_to_itself() {
  auto context = weft::Context::open();
  auto queue = context.create_completion_queue();
  std::array<char, 64> storage{"good day"};
  auto region = context.register_memory(storage, weft::Access::local_write);
  auto listener = context.listen("127.0.0.1:0", {.queue = queue});
  auto client = context.connect(listener.address(), {.queue = queue});

  weft::Endpoint server;
  std::array<weft::Completion, 8> entries;
  for (int up = 0, received = 0; received == 0;) {
    const auto polled = queue.wait(entries, 20s);
    require(!polled.empty(), "nothing happened for 20 s");
    for (const weft::Completion& entry : polled) {
      require(entry.status == weft::Status::ok, std::string(weft::to_string(entry.status)));
      if (entry.operation == weft::Operation::connection_request) {
        auto request = listener.next();
        require(request.has_value(), "no arrival behind its report");
        server = request->prepare({.queue = queue});
        require(server.receive(region.slice(32, 32), 1) == weft::Status::ok, "the receive was not taken");
        request->accept();
      } else if (entry.operation == weft::Operation::connect && ++up == 2) {
        require(client.send(region.slice(0, 8), 2) == weft::Status::ok, "the send was not taken");
      } else if (entry.operation == weft::Operation::receive) {
        require(std::string_view(storage.data() + 32, entry.bytes) == "good day", "another text arrived");
        ++received;
      }
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  try {
    require(count == 2, "usage: consumer PATH_OF_THE_TCP_PLUGIN");
    check_installation(arguments[1]);
    send_to_itself();
    std::cout << "weft " << weft::version() << " works\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "consumer: " << error.what() << '\n';
    return 1;
  }
}
