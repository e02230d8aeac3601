#include "log.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "variables.hpp"
#include "weft/status.hpp"

namespace weft::trace {
namespace {

std::string with_process_id(std::string path) {
  constexpr std::string_view place = "%p";
  for (std::size_t at = path.find(place); at != std::string::npos; at = path.find(place, at)) {
    path.replace(at, place.size(), std::to_string(::getpid()));
  }
  return path;
}

}  // namespace

Log::Log(provider::Host& host) : host_(host) {
  const auto path = host.variable(file_variable);
  if (!path || path->empty()) return;
  const std::string name = with_process_id(*path);
  file_ = std::fopen(name.c_str(), "ae");
  if (file_ == nullptr) {
    throw Error(Status::invalid_argument, fmt::format("{} is \"{}\": that file cannot be written: {}",
                                                      file_variable, name, std::strerror(errno)));
  }
}

Log::~Log() {
  if (file_ == nullptr) return;
  if (missing_) std::fputs("lines are missing: there was no memory for them\n", file_);
  std::fclose(file_);
}

void Log::write(const std::string& text) {
  if (file_ == nullptr) {
    host_.log(LogLevel::trace, text);
    return;
  }
  const double now =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  const std::string line = fmt::format("{:.6f} {}/{} {}\n", now, ::getpid(), ::gettid(), text);
  const std::lock_guard lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), file_);
  std::fflush(file_);  // what led to a crash is there to be read
}

}  // namespace weft::trace
