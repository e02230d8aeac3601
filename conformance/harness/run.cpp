#include "harness/run.hpp"

#include <unistd.h>

#include <exception>

#include "harness/network.hpp"
#include "harness/process_state.hpp"

namespace conformance {
namespace {

void note(const std::string& text) { Findings::here().add({__FILE__, __LINE__, text}); }

// What a provider keeps for the life of the process (itself, for one thing) must not look like a leak.
void warm_up(const Test& test) {
  const weft::Context context = test.open_context();
  CHECK(static_cast<bool>(context));
}

void check_nothing_is_left(const Holdings& before) {
  Holdings now;
  (void)eventually(2s, [&] {
    now = holdings_of_this_process();
    return now.descriptors <= before.descriptors && now.threads <= before.threads;
  });
  CHECK_LE(now.descriptors, before.descriptors) << "descriptors left behind; open now:" << open_descriptors();
  CHECK_LE(now.threads, before.threads) << "threads left behind";
}

}  // namespace

void run_noting_failures(Role role, const std::function<void()>& body) {
  try {
    body();
  } catch (const Stop&) {
  } catch (const Abandoned&) {
    if (role == Role::test && !Findings::here().failed())
      note("the other side of the control channel ended before this side was done");
  } catch (const weft::Error& error) {
    note("a weft::Error that the test did not expect, code " + std::string(to_string(error.code())) + ": " +
         error.what());
  } catch (const std::exception& error) {
    note(std::string("an exception that the test did not expect: ") + error.what());
  }
}

void check_nothing_is_left_by(const std::function<void()>& body) {
  const Holdings before = holdings_of_this_process();
  body();
  check_nothing_is_left(before);
}

void run_as_process(Role role, const Test& test, const std::function<void()>& body) {
  if (test.about().traits.network) {
    // The process group is named after the test's process.
    run_noting_failures(
        role, [&] { role == Role::test ? enter_network_as_test() : enter_network_as_peer(getpgrp()); });
    if (Findings::here().failed()) return;
  }
  start_canary();
  if (test.about().traits.cold) {
    run_noting_failures(role, body);
    return;
  }
  run_noting_failures(role, [&] { warm_up(test); });
  if (Findings::here().failed()) return;
  check_nothing_is_left_by([&] { run_noting_failures(role, body); });
}

}  // namespace conformance
