#include "fault_plan.hpp"

#include <charconv>
#include <stdexcept>
#include <string>

namespace fakeverbs {
namespace {

[[noreturn]] void refuse(std::string_view word, std::string_view why) {
  throw std::invalid_argument("fault plan: \"" + std::string(word) + "\": " + std::string(why));
}

template <class Number>
Number number(std::string_view word, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) refuse(word, "not a number");
  return value;
}

// 5: at the fifth; /5: at every fifth; 1%: with that probability.
Chance chance(std::string_view word, std::string_view text) {
  if (text.empty()) refuse(word, "says not when: N, /N or P%");
  Chance result;
  if (text.front() == '/') {
    result.every = number<std::uint64_t>(word, text.substr(1));
  } else if (text.back() == '%') {
    result.probability = number<double>(word, text.substr(0, text.size() - 1)) / 100;
  } else {
    result.at = number<std::uint64_t>(word, text);
  }
  if (!result.possible()) refuse(word, "would never happen");
  return result;
}

bool flag(std::string_view word, std::string_view text) {
  if (text.empty() || text == "1") return true;
  if (text == "0") return false;
  refuse(word, "is 0 or 1");
}

// NAME=CHANCE:NUMBER, the number being optional.
Chance chance_with(std::string_view word, std::string_view text, std::uint32_t& with) {
  const auto colon = text.find(':');
  if (colon != std::string_view::npos) with = number<std::uint32_t>(word, text.substr(colon + 1));
  return chance(word, text.substr(0, colon));
}

bool apply_limit(Limits& limits, std::string_view word, std::string_view name, std::string_view value) {
  std::uint32_t* field = nullptr;
  if (name == "entries") field = &limits.queue_entries;
  if (name == "cqe") field = &limits.completion_entries;
  if (name == "segments") field = &limits.segments;
  if (name == "inline") field = &limits.inline_bytes;
  if (name == "reads") field = &limits.reads;
  if (name == "queue-pairs") field = &limits.queue_pairs;
  if (name == "message") field = &limits.message_bytes;
  if (field != nullptr) {
    const auto asked = number<std::uint32_t>(word, value);
    if (asked > *field) refuse(word, "is above what the device can do, " + std::to_string(*field));
    *field = asked;
    return true;
  }
  if (name == "atomics") return limits.atomics = flag(word, value), true;
  if (name == "extended") return limits.extended = flag(word, value), true;
  if (name != "tiny") return false;
  limits = {.queue_entries = 16,
            .completion_entries = 64,
            .segments = 1,
            .inline_bytes = 0,
            .reads = 1,
            .queue_pairs = limits.queue_pairs,
            .message_bytes = limits.message_bytes,
            .atomics = false,
            .extended = false};
  return true;
}

void apply(FaultPlan& plan, std::string_view word) {
  const auto equals = word.find('=');
  const auto name = word.substr(0, equals);
  const auto value = equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
  if (apply_limit(plan.limits, word, name, value)) return;
  if (name == "seed") {
    plan.seed = number<std::uint64_t>(word, value);
  } else if (name == "garbage") {
    plan.garbage = flag(word, value);
  } else if (name == "relaxed") {
    plan.relaxed_ms = value.empty() ? 20 : number<std::uint32_t>(word, value);
  } else if (name == "slow-destroy") {
    plan.destroy_ms = number<std::uint32_t>(word, value);
  } else if (name == "send-enomem") {
    plan.post_send_enomem = chance(word, value);
  } else if (name == "receive-enomem") {
    plan.post_receive_enomem = chance(word, value);
  } else if (name == "register-enomem") {
    plan.register_enomem = chance(word, value);
  } else if (name == "create-enomem") {
    plan.create_enomem = chance(word, value);
  } else if (name == "delay") {
    plan.delay = chance_with(word, value, plan.delay_us);
  } else if (name == "fatal") {
    plan.fatal = chance(word, value);
  } else if (name == "port-down") {
    plan.port_down = chance_with(word, value, plan.port_up_ms);
  } else if (name == "lost") {
    plan.lost = chance(word, value);
  } else {
    refuse(word, "there is no such fault");
  }
}

}  // namespace

FaultPlan parse_fault_plan(std::string_view text) {
  FaultPlan plan;
  constexpr std::string_view separators = ", ;\t\n";
  while (true) {
    const auto begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return plan;
    text.remove_prefix(begin);
    const auto end = text.find_first_of(separators);
    apply(plan, text.substr(0, end));
    if (end == std::string_view::npos) return plan;
    text.remove_prefix(end);
  }
}

}  // namespace fakeverbs
