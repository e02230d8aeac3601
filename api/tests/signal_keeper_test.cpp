#include "signal_keeper.hpp"

#include <gtest/gtest.h>

namespace {

void programs_own(int /*signal*/) {}
void librarys(int /*signal*/) {}

TEST(SignalKeeper, ERR_6_what_a_library_sets_is_put_back) {
  struct sigaction mine = {};
  mine.sa_handler = programs_own;
  struct sigaction before = {};
  ASSERT_EQ(::sigaction(SIGHUP, &mine, &before), 0);
  sigset_t mask_before;
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &mask_before), 0);
  {
    const weft::core::SignalKeeper keeper;
    sigset_t inside;
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &inside), 0);
    EXPECT_EQ(::sigismember(&inside, SIGTERM), 1);
    struct sigaction theirs = {};
    theirs.sa_handler = librarys;
    ASSERT_EQ(::sigaction(SIGHUP, &theirs, nullptr), 0);
    ASSERT_EQ(::sigaction(SIGUSR2, &theirs, nullptr), 0);
  }
  struct sigaction now = {};
  ASSERT_EQ(::sigaction(SIGHUP, &before, &now), 0);
  EXPECT_EQ(now.sa_handler, programs_own);
  ASSERT_EQ(::sigaction(SIGUSR2, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
  sigset_t mask_after;
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &mask_after), 0);
  EXPECT_EQ(::sigismember(&mask_after, SIGTERM), ::sigismember(&mask_before, SIGTERM));
}

}  // namespace
