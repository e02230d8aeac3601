// Checks that work in every process and thread of a test, not only in the one that runs GoogleTest: what
// fails is noted and travels to the runner when the process is done. Each CHECK statement that was reached
// counts as one obligation, however often it was: so the count tells whether a test checked the same on two
// providers.
//
//   CHECK(…) CHECK_EQ(found, expected) CHECK_NE CHECK_LT CHECK_LE CHECK_GT CHECK_GE    go on after a failure
//   REQUIRE(…) REQUIRE_EQ …                                                           leave the test's
//   function
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/print.hpp"

namespace conformance {

struct Failure {
  std::string file;
  int line = 0;
  std::string text;
};

// Thrown by a failed REQUIRE, after the failure has been noted: leave the test.
struct Stop {};
// Thrown when the other side of a channel is gone, because it has already failed: there is nothing to add.
struct Abandoned {};

// What the checks of this process found.
class Findings {
 public:
  Findings() = default;
  Findings(Findings&& other) noexcept
      : failures_(std::move(other.failures_)),
        left_out_(other.left_out_),
        checked_(std::move(other.checked_)) {}
  static Findings& here();

  void count(const char* file, int line);
  void add(Failure failure);
  [[nodiscard]] std::uint64_t checks() const;
  [[nodiscard]] bool failed() const;
  // As one message, with everything emptied, and the way back into this process; `where` says whose it was.
  [[nodiscard]] std::string take();
  void merge(const std::string& taken, const std::string& where);
  [[nodiscard]] std::vector<Failure> failures() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Failure> failures_;
  std::uint64_t left_out_ = 0;
  std::set<std::pair<std::string_view, int>> checked_;  // statements; file names live as long as the program
};

// Takes the text streamed to a failed check.
class FailedCheck {
 public:
  FailedCheck(const char* file, int line, std::string text, bool fatal)
      : file_(file), line_(line), text_(std::move(text)), fatal_(fatal) {}
  void operator=(const testing::Message& more) const noexcept(false);

 private:
  const char* file_;
  int line_;
  std::string text_;
  bool fatal_;
};

namespace detail {

testing::AssertionResult truth(const char* text, bool value);
testing::AssertionResult comparison(bool holds, const char* found_text, const char* relation,
                                    const char* expected_text, const std::string& found,
                                    const std::string& expected);

template <class T>
inline constexpr bool is_number =
    std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>;

#define WEFT_COMPARISON(name, relation, number_function)                                          \
  template <class A, class B>                                                                     \
  testing::AssertionResult name(const char* a_text, const char* b_text, const A& a, const B& b) { \
    bool holds = false;                                                                           \
    if constexpr (is_number<A> && is_number<B>) {                                                 \
      holds = std::number_function(a, b);                                                         \
    } else {                                                                                      \
      holds = a relation b;                                                                       \
    }                                                                                             \
    return comparison(holds, a_text, #relation, b_text, holds ? "" : testing::PrintToString(a),   \
                      holds ? "" : testing::PrintToString(b));                                    \
  }
WEFT_COMPARISON(equal, ==, cmp_equal)
WEFT_COMPARISON(unequal, !=, cmp_not_equal)
WEFT_COMPARISON(less, <, cmp_less)
WEFT_COMPARISON(less_equal, <=, cmp_less_equal)
WEFT_COMPARISON(greater, >, cmp_greater)
WEFT_COMPARISON(greater_equal, >=, cmp_greater_equal)
#undef WEFT_COMPARISON

}  // namespace detail

// The error that a call throws, or nothing.
template <class Function>
[[nodiscard]] std::optional<weft::Error> error_of(Function&& function) {
  try {
    function();
  } catch (const weft::Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace conformance

// A loop that runs once at most, because after an `if` a loop takes no `else` away.
#define WEFT_CHECK_RESULT(result, fatal)                                          \
  for (::testing::AssertionResult weft_check_result =                             \
           (::conformance::Findings::here().count(__FILE__, __LINE__), (result)); \
       !weft_check_result; weft_check_result = ::testing::AssertionSuccess())     \
  ::conformance::FailedCheck(__FILE__, __LINE__, weft_check_result.message(), fatal) = ::testing::Message()

#define CHECK(x) WEFT_CHECK_RESULT(::conformance::detail::truth(#x, static_cast<bool>(x)), false)
#define CHECK_EQ(a, b) WEFT_CHECK_RESULT(::conformance::detail::equal(#a, #b, a, b), false)
#define CHECK_NE(a, b) WEFT_CHECK_RESULT(::conformance::detail::unequal(#a, #b, a, b), false)
#define CHECK_LT(a, b) WEFT_CHECK_RESULT(::conformance::detail::less(#a, #b, a, b), false)
#define CHECK_LE(a, b) WEFT_CHECK_RESULT(::conformance::detail::less_equal(#a, #b, a, b), false)
#define CHECK_GT(a, b) WEFT_CHECK_RESULT(::conformance::detail::greater(#a, #b, a, b), false)
#define CHECK_GE(a, b) WEFT_CHECK_RESULT(::conformance::detail::greater_equal(#a, #b, a, b), false)

#define REQUIRE(x) WEFT_CHECK_RESULT(::conformance::detail::truth(#x, static_cast<bool>(x)), true)
#define REQUIRE_EQ(a, b) WEFT_CHECK_RESULT(::conformance::detail::equal(#a, #b, a, b), true)
#define REQUIRE_NE(a, b) WEFT_CHECK_RESULT(::conformance::detail::unequal(#a, #b, a, b), true)
#define REQUIRE_LE(a, b) WEFT_CHECK_RESULT(::conformance::detail::less_equal(#a, #b, a, b), true)
#define REQUIRE_GE(a, b) WEFT_CHECK_RESULT(::conformance::detail::greater_equal(#a, #b, a, b), true)
