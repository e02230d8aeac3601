#include "scenarios.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace instructions {
namespace {

using weft::Flags;
using weft::Operation;

void must(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

struct Shape {
  Operation operation = Operation::send;
  std::size_t length = 8;
  Flags flags = Flags::none;
  unsigned count = 1;
};

// Posting `count` operations with one call.
class Posting final : public Subject {
 public:
  Posting(const PairPlan& plan, const Shape& shape) : pair_(plan) {
    const bool inline_data = has(shape.flags, Flags::inline_data);
    segment_ =
        inline_data ? weft::Segment::inline_bytes(bytes_.data(), shape.length) : pair_.source(shape.length);
    requests_.resize(shape.count);
    for (weft::WorkRequest& request : requests_) {
      request.operation = shape.operation;
      request.flags = shape.flags;
      request.segments = std::span(&segment_, 1);
      request.remote = pair_.target();
    }
  }
  void prepare() override {
    must(accepted_ == requests_.size() || accepted_ == 0, "the batch was not taken whole");
    pair_.settle();
  }
  void act() override { accepted_ = pair_.client().post(requests_).accepted; }

 private:
  Pair pair_;
  std::array<std::byte, 64> bytes_{};
  weft::Segment segment_;
  std::vector<weft::WorkRequest> requests_;
  std::size_t accepted_ = 0;
};

// Polling the receiver's queue once, with `count` messages there.
class PollingReceives final : public Subject {
 public:
  PollingReceives(const PairPlan& plan, unsigned count) : pair_(plan), count_(count), yielded_(count) {
    segment_ = weft::Segment::inline_bytes(bytes_.data(), 8);
  }
  void prepare() override {
    must(yielded_ == count_, "the poll did not yield what was there");
    pair_.settle();
    std::vector<weft::WorkRequest> requests(count_);
    for (weft::WorkRequest& request : requests) {
      request.flags = Flags::inline_data | Flags::unsignalled;
      request.segments = std::span(&segment_, 1);
    }
    must(count_ == 0 || pair_.client().post(requests).accepted == count_, "the messages were not taken");
    Pair::let_arrive();
  }
  void act() override { yielded_ = pair_.server_queue().poll(entries_).size(); }

 private:
  Pair pair_;
  unsigned count_;
  std::size_t yielded_;
  std::array<std::byte, 64> bytes_{};
  weft::Segment segment_;
  std::array<weft::Completion, 16> entries_{};
};

// Polling the sender's queue once, with `count` send completions there.
class PollingSends final : public Subject {
 public:
  PollingSends(const PairPlan& plan, unsigned count) : pair_(plan), count_(count), yielded_(count) {
    segment_ = pair_.source(64);
  }
  void prepare() override {
    must(yielded_ == count_, "the poll did not yield what was there");
    pair_.settle();
    std::vector<weft::WorkRequest> requests(count_);
    for (weft::WorkRequest& request : requests) request.segments = std::span(&segment_, 1);
    must(pair_.client().post(requests).accepted == count_, "the messages were not taken");
    Pair::let_arrive();
  }
  void act() override { yielded_ = pair_.client_queue().poll(entries_).size(); }

 private:
  Pair pair_;
  unsigned count_;
  std::size_t yielded_;
  weft::Segment segment_;
  std::array<weft::Completion, 16> entries_{};
};

// Polling the target's queue once, with `count` writes there: they give no completion.
class PollingWrites final : public Subject {
 public:
  PollingWrites(const PairPlan& plan, unsigned count) : pair_(plan), count_(count) {
    segment_ = weft::Segment::inline_bytes(bytes_.data(), 8);
  }
  void prepare() override {
    pair_.settle();
    std::vector<weft::WorkRequest> requests(count_);
    for (weft::WorkRequest& request : requests) {
      request.operation = Operation::write;
      request.flags = Flags::inline_data | Flags::unsignalled;
      request.segments = std::span(&segment_, 1);
      request.remote = pair_.target();
    }
    must(pair_.client().post(requests).accepted == count_, "the writes were not taken");
    Pair::let_arrive();
  }
  void act() override { (void)pair_.server_queue().poll(entries_); }

 private:
  Pair pair_;
  unsigned count_;
  std::array<std::byte, 64> bytes_{};
  weft::Segment segment_;
  std::array<weft::Completion, 16> entries_{};
};

class PostingReceives final : public Subject {
 public:
  PostingReceives(const PairPlan& plan, unsigned count) : pair_(plan), requests_(count) {
    segment_ = pair_.destination(4096);
    for (weft::ReceiveRequest& request : requests_) request.segments = std::span(&segment_, 1);
  }
  // Takes as many receives as act() posts, and one more that is posted here: its news for the peer is held
  // back already, and a sleeping helper awake.
  void prepare() override {
    pair_.settle();
    weft::WorkRequest empty;
    empty.flags = Flags::unsignalled;
    const std::vector<weft::WorkRequest> messages(requests_.size() + 1, empty);
    must(pair_.client().post(messages).accepted == messages.size(), "the messages were not taken");
    std::array<weft::Completion, 64> entries;
    for (std::size_t taken = 0; taken < messages.size();) {
      for (const weft::Completion& entry : pair_.server_queue().wait(entries, std::chrono::seconds(1)))
        taken += entry.operation == Operation::receive ? 1 : 0;
    }
    must(pair_.server().post_receives({requests_.data(), 1}).accepted == 1, "the receive was not taken");
  }
  void act() override { (void)pair_.server().post_receives(requests_); }

 private:
  Pair pair_;
  weft::Segment segment_;
  std::vector<weft::ReceiveRequest> requests_;
};

template <class S, class Argument>
Scenario make_scenario(std::string_view name, unsigned operations, const Argument& argument) {
  return {name, operations, [argument](const PairPlan& plan) { return std::make_unique<S>(plan, argument); }};
}

Scenario posting(std::string_view name, const Shape& shape) {
  return make_scenario<Posting>(name, shape.count, shape);
}

constexpr auto inline_unsignalled = Flags::inline_data | Flags::unsignalled;

}  // namespace

std::span<const Scenario> scenarios() {
  static const std::vector<Scenario> all = {
      posting("post send 8 B inline unsignalled", {Operation::send, 8, inline_unsignalled, 1}),
      posting("post send 64 B signalled", {Operation::send, 64, Flags::none, 1}),
      posting("post send 4 KiB signalled", {Operation::send, 4096, Flags::none, 1}),
      posting("post send 8 B inline unsignalled x32", {Operation::send, 8, inline_unsignalled, 32}),
      posting("post send 64 B signalled x64", {Operation::send, 64, Flags::none, 64}),
      posting("post write 8 B inline unsignalled", {Operation::write, 8, inline_unsignalled, 1}),
      posting("post write 4 KiB signalled", {Operation::write, 4096, Flags::none, 1}),
      posting("post write 8 B inline unsignalled x32", {Operation::write, 8, inline_unsignalled, 32}),
      posting("post write 64 B signalled x64", {Operation::write, 64, Flags::none, 64}),
      posting("post read 64 B signalled", {Operation::read, 64, Flags::none, 1}),
      make_scenario<PostingReceives>("post receive", 1, 1U),
      make_scenario<PostingReceives>("post receive x32", 32, 32U),
      make_scenario<PollingReceives>("poll, nothing there", 1, 0U),
      make_scenario<PollingReceives>("poll, 1 received message", 1, 1U),
      make_scenario<PollingReceives>("poll, 16 received messages", 16, 16U),
      make_scenario<PollingWrites>("poll, 16 arrived writes", 16, 16U),
      make_scenario<PollingSends>("poll, 1 completed send", 1, 1U),
      make_scenario<PollingSends>("poll, 16 completed sends", 16, 16U),
  };
  return all;
}

const Scenario& scenario(std::string_view name) {
  for (const Scenario& one : scenarios()) {
    if (one.name == name) return one;
  }
  throw std::out_of_range("there is no scenario '" + std::string(name) + "'");
}

}  // namespace instructions
