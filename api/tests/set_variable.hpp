// Sets or unsets an environment variable while it lives.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace weft::test {

class SetVariable {
 public:
  SetVariable(std::string name, const std::optional<std::string>& value) : name_(std::move(name)) {
    if (const char* const before = std::getenv(name_.c_str())) before_ = before;
    put(value);
  }
  SetVariable(const SetVariable&) = delete;
  SetVariable& operator=(const SetVariable&) = delete;
  ~SetVariable() { put(before_); }

 private:
  void put(const std::optional<std::string>& value) const {
    if (value) {
      ::setenv(name_.c_str(), value->c_str(), 1);
    } else {
      ::unsetenv(name_.c_str());
    }
  }

  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace weft::test
