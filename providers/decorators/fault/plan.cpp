#include "plan.hpp"

#include <charconv>
#include <string>
#include <utility>

#include "decorators/common/random.hpp"

namespace weft::fault {
namespace {

[[noreturn]] void refuse(std::string_view item, const std::string& why) {
  throw Error(
      Status::invalid_argument,
      "WEFT_FAULT_PLAN: \"" + std::string(item) + "\" " + why +
          "; a plan is a list of EVENT@WHEN, separated by ';', with seed=NUMBER anywhere in it. Events: "
          "refuse, again, again-receive, register, delay=TIME, end=CAUSE. When: 10% (by chance), #3 (the "
          "third occasion), every5 (each fifth)");
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// "10%", "#3", "every5".
When read_when(std::string_view item, std::string_view text) {
  constexpr std::string_view every = "every";
  When when;
  if (text.ends_with('%')) {
    text.remove_suffix(1);
    const auto chance = number_in<double>(text);
    if (!chance || *chance < 0 || *chance > 100) refuse(item, "needs a chance from 0% to 100%");
    when.chance = *chance;
  } else if (text.starts_with('#')) {
    const auto at = number_in<std::uint64_t>(text.substr(1));
    if (!at || *at == 0) refuse(item, "needs the number of an occasion, from #1 on");
    when.at = *at;
  } else if (text.starts_with(every)) {
    const auto count = number_in<std::uint64_t>(text.substr(every.size()));
    if (!count || *count == 0) refuse(item, "needs a number after 'every'");
    when.every = *count;
  } else {
    refuse(item, "does not say when");
  }
  return when;
}

std::chrono::nanoseconds read_time(std::string_view item, std::string_view text) {
  std::chrono::nanoseconds unit = std::chrono::seconds(1);
  for (const auto& [suffix, length] :
       {std::pair<std::string_view, std::chrono::nanoseconds>{"us", std::chrono::microseconds(1)},
        {"ms", std::chrono::milliseconds(1)},
        {"s", std::chrono::seconds(1)}}) {
    if (!text.ends_with(suffix)) continue;
    text.remove_suffix(suffix.size());
    unit = length;
    break;
  }
  const auto number = number_in<std::uint64_t>(text);
  constexpr std::uint64_t longest = 1'000'000;
  if (!number || *number > longest) refuse(item, "needs a time such as 5ms, 200us or 1s");
  return unit * *number;
}

Status read_cause(std::string_view item, std::string_view text) {
  for (const Status cause :
       {Status::aborted, Status::peer_lost, Status::protocol, Status::remote_access_error}) {
    if (text == to_string(cause)) return cause;
  }
  refuse(item, "needs a cause: aborted, peer_lost, protocol or remote_access_error");
}

std::optional<Event> event_of(std::string_view name) {
  for (const auto& [text, event] : {std::pair<std::string_view, Event>{"refuse", Event::refuse},
                                    {"again", Event::again},
                                    {"again-receive", Event::again_receive},
                                    {"register", Event::register_memory},
                                    {"delay", Event::delay},
                                    {"end", Event::end}}) {
    if (name == text) return event;
  }
  return std::nullopt;
}

}  // namespace

Plan::Plan(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find(';');
    const std::string_view item = trimmed(text.substr(0, end));
    if (!item.empty()) read_item(item);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

void Plan::read_item(std::string_view item) {
  constexpr std::string_view seed = "seed=";
  if (item.starts_with(seed)) {
    const auto number = number_in<std::uint64_t>(item.substr(seed.size()));
    if (!number) refuse(item, "needs a whole number");
    seed_ = *number;
    return;
  }
  const std::size_t sign = item.find('@');
  if (sign == std::string_view::npos) refuse(item, "does not say when");
  const std::string_view what = trimmed(item.substr(0, sign));
  const std::size_t equals = what.find('=');
  const auto event = event_of(what.substr(0, equals));
  const bool has_value = equals != std::string_view::npos;
  if (!event || has_value != (*event == Event::delay || *event == Event::end)) refuse(item, "is no event");
  if (when_[index(*event)]) refuse(item, "comes a second time");
  if (*event == Event::delay) delay_ = read_time(item, what.substr(equals + 1));
  if (*event == Event::end) cause_ = read_cause(item, what.substr(equals + 1));
  when_[index(*event)] = read_when(item, trimmed(item.substr(sign + 1)));
}

bool Plan::strikes(Event event) noexcept {
  const std::size_t which = index(event);
  if (!when_[which]) return false;
  const When& when = *when_[which];
  const std::uint64_t occasion = occasions_[which].fetch_add(1, std::memory_order_relaxed) + 1;
  bool strikes = occasion == when.at || (when.every != 0 && occasion % when.every == 0);
  if (when.chance > 0) {
    constexpr std::uint64_t fine = 1'000'000;
    const std::uint64_t thrown =
        decorator::mixed(decorator::mixed(seed_ * event_count + which) + occasion) % fine;
    strikes = strikes || static_cast<double>(thrown) < when.chance / 100.0 * static_cast<double>(fine);
  }
  if (strikes) struck_.fetch_add(1, std::memory_order_relaxed);
  return strikes;
}

}  // namespace weft::fault
