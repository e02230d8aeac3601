// Both ends of a connection of weft's verbs provider in one process, on the device made of software.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <vector>

#include "weft/weft.hpp"

namespace fakeverbs_test {

using namespace std::chrono_literals;

struct Loop {
  explicit Loop(std::chrono::milliseconds peer_timeout = 3s);
  // A connection more between the same queues.
  void connect();
  // What the queue hands out, until one of this operation is there or nothing comes for long.
  [[nodiscard]] std::vector<weft::Completion> until(const weft::CompletionQueue& queue,
                                                    weft::Operation operation) const;

  std::array<std::byte, 4096> bytes{};
  weft::Context context;
  weft::CompletionQueue near_queue;
  weft::CompletionQueue far_queue;
  weft::Listener listener;
  weft::Endpoint near;
  weft::Endpoint far;
  weft::MemoryRegion region;
};

// Runs `body` in a process whose device has this plan.
void expect_under_plan(const char* plan, const std::function<void()>& body);

}  // namespace fakeverbs_test
