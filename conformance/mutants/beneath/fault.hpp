// What the wrong calls share: which fault is chosen, the mark that it struck, the real call.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace fault {

inline bool is(std::string_view name) {
  const char* chosen = std::getenv("MUTANT_BENEATH");
  return chosen != nullptr && name == chosen;
}

inline void strike() {
  const char* path = std::getenv("MUTANT_STRUCK_FILE");
  const int file = path == nullptr ? -1 : ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return;
  (void)!::write(file, "x", 1);
  ::close(file);
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

template <class T>
T at(const void* bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(bytes) + offset, sizeof value);
  return value;
}

inline bool is_tcp(int descriptor) {
  int type = 0;
  socklen_t size = sizeof type;
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  return real<decltype(::getsockopt)>("getsockopt")(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
         type == SOCK_STREAM &&
         real<decltype(::getsockname)>("getsockname")(descriptor, reinterpret_cast<sockaddr*>(&address),
                                                      &length) == 0 &&
         address.ss_family != AF_UNIX;
}

// Frames of the core's handshake: 32-bit length, 16-bit type, 16 bits of zero.
constexpr std::size_t header_size = 8;
inline bool is_frame(const void* bytes, std::size_t size, std::uint16_t type) {
  return size > header_size && at<std::uint32_t>(bytes, 0) == size - header_size &&
         at<std::uint16_t>(bytes, 4) == type && at<std::uint16_t>(bytes, 6) == 0;
}

}  // namespace fault
