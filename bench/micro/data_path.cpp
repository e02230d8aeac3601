// Posting, polling and batching inside one process: one thread is both ends of a connection, so that no other
// processor takes part. The provider is WEFT_PROVIDER, else tcp; the thread mode is in the name.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "instructions/pair.hpp"

namespace {

using instructions::Pair;
using weft::Flags;
using weft::Operation;

instructions::PairPlan plan(weft::ThreadMode threads) {
  const char* const provider = std::getenv("WEFT_PROVIDER");
  return {provider == nullptr ? "tcp" : provider, threads};
}

std::vector<weft::WorkRequest> requests(Pair& pair, Operation operation, const weft::Segment& segment,
                                        std::size_t count) {
  std::vector<weft::WorkRequest> all(count);
  for (weft::WorkRequest& request : all) {
    request.operation = operation;
    request.flags = Flags::unsignalled;
    request.segments = std::span(&segment, 1);
    request.remote = pair.target();
  }
  // One completion tells that the whole batch is done (CMP-4).
  all.back().flags = Flags::none;
  return all;
}

// Until the peer has received `count` messages, or the initiator's own completion is there.
std::size_t take(weft::CompletionQueue& queue, Operation wanted) {
  std::array<weft::Completion, 64> entries;
  std::size_t taken = 0;
  for (const weft::Completion& entry : queue.poll(entries)) {
    if (entry.status != weft::Status::ok) throw std::runtime_error("an operation failed");
    taken += entry.operation == wanted ? 1 : 0;
  }
  return taken;
}

// A batch of messages from post to receive, receives posted again; per message.
void send_batch(benchmark::State& state, weft::ThreadMode threads) {
  const auto batch = static_cast<std::size_t>(state.range(0));
  const auto length = static_cast<std::size_t>(state.range(1));
  Pair pair(plan(threads));
  const weft::Segment segment = pair.source(length);
  const weft::Segment place = pair.destination(length);
  const std::vector<weft::WorkRequest> messages = requests(pair, Operation::send, segment, batch);
  const std::vector<weft::ReceiveRequest> receives(batch, {0, std::span(&place, 1)});
  for (auto _ : state) {
    if (pair.client().post(messages).accepted != batch)
      throw std::runtime_error("a batch was not taken whole");
    for (std::size_t received = 0; received < batch;)
      received += take(pair.server_queue(), Operation::receive);
    for (std::size_t sent = 0; sent == 0;) sent = take(pair.client_queue(), Operation::send);
    if (pair.server().post_receives(receives).accepted != batch)
      throw std::runtime_error("receives not taken");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * state.range(0) * state.range(1));
}

// A batch of writes from post to completion; per write.
void write_batch(benchmark::State& state, weft::ThreadMode threads) {
  const auto batch = static_cast<std::size_t>(state.range(0));
  Pair pair(plan(threads));
  const weft::Segment segment = pair.source(static_cast<std::size_t>(state.range(1)));
  const std::vector<weft::WorkRequest> writes = requests(pair, Operation::write, segment, batch);
  for (auto _ : state) {
    if (pair.client().post(writes).accepted != batch) throw std::runtime_error("a batch was not taken whole");
    for (std::size_t done = 0; done == 0;) {
      take(pair.server_queue(), Operation::receive);
      done = take(pair.client_queue(), Operation::write);
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * state.range(0) * state.range(1));
}

void poll_idle(benchmark::State& state, weft::ThreadMode threads) {
  Pair pair(plan(threads));
  std::array<weft::Completion, 16> entries;
  for (auto _ : state) benchmark::DoNotOptimize(pair.server_queue().poll(entries).size());
}

const std::vector<std::vector<std::int64_t>> shapes = {{1, 16, 64}, {8, 64, 1024}};

BENCHMARK_CAPTURE(send_batch, single, weft::ThreadMode::single)
    ->ArgNames({"batch", "bytes"})
    ->ArgsProduct(shapes);
BENCHMARK_CAPTURE(send_batch, safe, weft::ThreadMode::safe)
    ->ArgNames({"batch", "bytes"})
    ->ArgsProduct(shapes);
BENCHMARK_CAPTURE(write_batch, single, weft::ThreadMode::single)
    ->ArgNames({"batch", "bytes"})
    ->ArgsProduct(shapes);
BENCHMARK_CAPTURE(write_batch, safe, weft::ThreadMode::safe)
    ->ArgNames({"batch", "bytes"})
    ->ArgsProduct(shapes);
BENCHMARK_CAPTURE(poll_idle, single, weft::ThreadMode::single);
BENCHMARK_CAPTURE(poll_idle, safe, weft::ThreadMode::safe);

}  // namespace
