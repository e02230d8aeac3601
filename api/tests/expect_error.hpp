// Calls that must throw weft::Error, and what their texts must say.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "weft/status.hpp"

namespace weft::test {

struct Thrown {
  Status code = Status::ok;  // ok: nothing was thrown
  std::string text;
};

template <typename Function>
Thrown thrown_by(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {Status::ok, "(nothing was thrown)"};
}

inline bool contains(const std::string& text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

}  // namespace weft::test

#define EXPECT_SAYS(text, piece) EXPECT_TRUE(::weft::test::contains((text), (piece))) << (text)
#define EXPECT_SAYS_NOT(text, piece) EXPECT_FALSE(::weft::test::contains((text), (piece))) << (text)
