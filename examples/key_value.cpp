// A key-value store: values are put by messages and read by one-sided reads, which cost the server nothing.
//   key_value listen 0.0.0.0:7471               holds the values
//   key_value 127.0.0.1:7471 put colour green   stores one; with `get colour` reads it
#include <array>
#include <chrono>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/weft.hpp"

using namespace std::chrono_literals;
using weft::Operation;

namespace {

// A key has one place in the table. A read may meet the server writing there; then the sum is wrong.
struct Slot {
  std::size_t sum = 0;
  std::array<char, 60> key{};
  std::array<char, 188> value{};
  std::size_t right_sum() const {
    return std::hash<std::string_view>{}({key.data(), sizeof key + sizeof value});
  }
};
constexpr std::size_t slots = 65536;

std::size_t place_of(std::string_view key) { return std::hash<std::string_view>{}(key) % slots; }

void require(weft::Status status, const char* what) {
  if (status != weft::Status::ok) throw weft::Error(status, what);
}

bool store(Slot& put, std::vector<Slot>& table) {
  put.key.back() = put.value.back() = 0;  // whatever the client sent
  put.sum = put.right_sum();
  Slot& slot = table[place_of(put.key.data())];
  if (slot.key[0] == 0 || slot.key == put.key) slot = put;
  return slot.key == put.key;  // else the place is taken
}

void serve(std::string_view address) {
  auto context = weft::Context::open();
  auto queue = context.create_completion_queue();
  std::vector<Slot> table(slots);
  auto region = context.register_memory(table, weft::Access::remote_read);
  std::array<Slot, 32> puts{};
  auto region_of_puts = context.register_memory(puts, weft::Access::local_write);
  auto receives = context.create_receive_queue({.queue = queue, .depth = puts.size()});
  const auto post = [&](std::size_t i) {
    require(receives.receive(region_of_puts.slice(i * sizeof(Slot), sizeof(Slot)), i), "a receive");
  };
  for (std::size_t i = 0; i < puts.size(); ++i) post(i);
  auto listener = context.listen(address, {.queue = queue});
  std::cout << "listening at " << listener.address() << std::endl;

  std::map<std::uint32_t, weft::Endpoint> clients;
  for (weft::Completion entry; !queue.wait({&entry, 1}, -1s).empty();) {
    if (entry.operation == Operation::connection_request) {
      try {
        auto client = listener.next().value().accept(
            {.queue = queue, .shared_receives = receives, .private_data = region.key()});
        clients.emplace(client.id(), client);
      } catch (const std::exception&) {  // it gave up meanwhile
      }
    } else if (entry.operation == Operation::receive) {
      if (entry.status == weft::Status::ok && entry.bytes == sizeof(Slot)) {
        const char stored = store(puts[entry.context], table) ? 1 : 0;
        const auto answer = weft::Segment::inline_bytes(&stored, 1);
        (void)clients.at(entry.endpoint_id).send(answer, 0, weft::Flags::inline_data);
      }
      post(entry.context);
    } else if (entry.operation == Operation::endpoint_ended) {
      clients.erase(entry.endpoint_id);
    }
  }
}

// Puts, or gets when there is no value; what came of it, in words.
std::string use(std::string_view address, std::string_view key, std::string_view value) {
  Slot slot;
  char stored = 0;
  auto context = weft::Context::open();
  auto queue = context.create_completion_queue();
  auto region = context.register_memory(&slot, sizeof slot, weft::Access::local_write);
  auto answer = context.register_memory(&stored, 1, weft::Access::local_write);
  auto endpoint = context.connect(address, {.queue = queue}).wait_up(5s);
  auto table = endpoint.import_memory(endpoint.peer_private_data());
  const bool put = !value.empty();
  if (put) {
    key.copy(slot.key.data(), slot.key.size() - 1);
    value.copy(slot.value.data(), slot.value.size() - 1);
    require(endpoint.receive(answer.whole(), 1), "a receive");
    require(endpoint.send(region.whole(), 2), "a send");
  }
  do {
    if (!put) require(endpoint.read(region.whole(), table.at(place_of(key) * sizeof(Slot)), 1), "a read");
    for (weft::Completion entry; entry.context != 1; require(entry.status, "the server is gone")) {
      if (queue.wait({&entry, 1}, 10s).empty())
        throw weft::Error(weft::Status::timed_out, "no answer in 10 s");
    }
  } while (!put && slot.key[0] != 0 && slot.sum != slot.right_sum());
  if (put) return stored == 1 ? "stored" : "its place is taken by another key";
  return key == slot.key.data() ? slot.value.data() : "there is no such key";
}

}  // namespace

int main(int count, char** arguments) try {
  if (count == 3 && std::string_view(arguments[1]) == "listen") serve(arguments[2]);
  if (count < 4) return std::cerr << "usage: the first lines of key_value.cpp\n", 2;
  std::cout << use(arguments[1], arguments[3], count == 5 ? arguments[4] : "") << std::endl;
  return 0;
} catch (const weft::Error& error) {
  std::cerr << "key_value: " << error.what() << '\n';
  return 1;
}
