// A file, pulled by one-sided reads straight from the sender's file into the receiver's, with a progress bar.
//   file_copy offer FILE 0.0.0.0:7471   waits until somebody has taken it
//   file_copy take 127.0.0.1:7471 FILE  writes what is offered there to FILE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "weft/weft.hpp"

using namespace std::chrono_literals;

namespace {

// A file in memory, for as long as the program runs. With a size it is made anew.
std::span<std::byte> map_file(const char* name, std::size_t new_size = 0) {
  const bool make = new_size != 0;
  const int file = ::open(name, make ? O_RDWR | O_CREAT | O_TRUNC : O_RDONLY, 0666);
  struct stat status {};
  const bool is_there = file >= 0 && (!make || ::ftruncate(file, static_cast<off_t>(new_size)) == 0) &&
                        ::fstat(file, &status) == 0;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const data =
      is_there ? ::mmap(nullptr, size, make ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0)
               : MAP_FAILED;
  if (data == MAP_FAILED) throw std::system_error(errno, std::system_category(), name);
  return {static_cast<std::byte*>(data), size};
}

void offer(const char* name, std::string_view address) {
  const std::span<const std::byte> file = map_file(name);
  auto context = weft::Context::open();
  auto queue = context.create_completion_queue();
  // Read-only memory can be registered as well; the key says how long it is.
  auto region = context.register_memory(file.data(), file.size(), weft::Access::remote_read);
  auto listener = context.listen(address, {.queue = queue});
  std::cout << "listening at " << listener.address() << std::endl;
  weft::Endpoint endpoint;
  for (weft::Completion entry; !queue.wait({&entry, 1}, -1s).empty();) {
    if (entry.operation == weft::Operation::connection_request) {
      auto request = listener.next();
      if (endpoint || !request) continue;  // one taker is enough; dropping the request rejects it
      endpoint = request->accept({.queue = queue, .private_data = region.key()});
    } else if (entry.operation == weft::Operation::endpoint_ended) {
      std::cout << "the taker is gone: " << weft::to_string(entry.status) << std::endl;
      return;
    }
  }
}

void take(std::string_view address, const char* name) {
  auto context = weft::Context::open();
  auto queue = context.create_completion_queue();
  auto endpoint = context.connect(address, {.queue = queue}).wait_up(5s);
  auto source = endpoint.import_memory(endpoint.peer_private_data());
  const std::span<std::byte> file = map_file(name, source.length());
  auto region = context.register_memory(file, weft::Access::local_write);

  constexpr std::uint64_t piece = 1 << 20;
  std::uint64_t asked = 0;
  std::array<weft::Completion, 16> entries;
  for (std::uint64_t done = 0; done < file.size();) {
    // As many pieces under way as the endpoint takes.
    while (asked < file.size()) {
      const std::uint64_t length = std::min(piece, file.size() - asked);
      const auto status = endpoint.read(region.slice(asked, length), source.at(asked), length);
      if (status == weft::Status::again) break;
      if (status != weft::Status::ok) throw weft::Error(status, "posting a read");
      asked += length;
    }
    for (const auto& entry : queue.wait(entries, 30s)) {
      if (entry.status != weft::Status::ok) throw weft::Error(entry.status, endpoint.describe_end());
      done += entry.context;
    }
    const auto bar = static_cast<std::size_t>(40 * done / file.size());
    std::cerr << '\r' << '[' << std::string(bar, '#') << std::string(40 - bar, ' ') << "] "
              << 100 * done / file.size() << " %" << std::flush;
  }
  std::cerr << '\n';
  std::cout << file.size() << " bytes taken" << std::endl;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::string_view order = count == 4 ? arguments[1] : "";
    if (order == "offer") {
      offer(arguments[2], arguments[3]);
    } else if (order == "take") {
      take(arguments[2], arguments[3]);
    } else {
      std::cerr << "usage: file_copy offer FILE ADDRESS | file_copy take ADDRESS FILE\n";
      return 2;
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "file_copy: " << error.what() << '\n';
    return 1;
  }
}
