#include "limit_text.hpp"

#include <sys/resource.h>

#include <cerrno>
#include <system_error>

namespace weft::engine {

std::string descriptor_error_text(int error_number) {
  std::string text = std::system_category().message(error_number);
  rlimit limit{};
  if (error_number == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    text += ": the process may have " + std::to_string(limit.rlim_cur) +
            " descriptors (RLIMIT_NOFILE); raise it with ulimit -n, or close some";
  } else if (error_number == ENFILE) {
    text += ": the whole system has no descriptor left (fs.file-max); close some";
  }
  return text;
}

}  // namespace weft::engine
