#include "harness/check.hpp"

#include <nlohmann/json.hpp>

namespace conformance {
namespace {

// A process that fails in a loop must still be able to tell its story in one message.
constexpr std::size_t most_failures = 20;
constexpr std::size_t longest_text = 3000;

// Names of source files, kept for the life of the process.
std::string_view kept_name(const std::string& name) {
  static std::mutex mutex;
  static auto* names = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return *names->insert(name).first;
}

}  // namespace

Findings& Findings::here() {
  static auto* findings = new Findings;  // outlives static destructors on purpose
  return *findings;
}

void Findings::count(const char* file, int line) {
  const std::lock_guard lock(mutex_);
  checked_.emplace(file, line);
}

void Findings::add(Failure failure) {
  const std::lock_guard lock(mutex_);
  if (failures_.size() >= most_failures) {
    ++left_out_;
    return;
  }
  if (failure.text.size() > longest_text) failure.text.resize(longest_text);
  failures_.push_back(std::move(failure));
}

std::uint64_t Findings::checks() const {
  const std::lock_guard lock(mutex_);
  return checked_.size();
}

bool Findings::failed() const {
  const std::lock_guard lock(mutex_);
  return !failures_.empty();
}

std::vector<Failure> Findings::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

std::string Findings::take() {
  const std::lock_guard lock(mutex_);
  nlohmann::json out{
      {"checked", nlohmann::json::array()}, {"left_out", left_out_}, {"failures", nlohmann::json::array()}};
  for (const auto& [file, line] : checked_) out["checked"].push_back({file, line});
  for (const Failure& failure : failures_) {
    out["failures"].push_back({{"file", failure.file}, {"line", failure.line}, {"text", failure.text}});
  }
  failures_.clear();
  checked_.clear();
  left_out_ = 0;
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void Findings::merge(const std::string& taken, const std::string& where) {
  const nlohmann::json in = nlohmann::json::parse(taken);
  for (const auto& failure : in.at("failures")) {
    add({failure.at("file"), failure.at("line"), where + failure.at("text").get<std::string>()});
  }
  const std::lock_guard lock(mutex_);
  for (const auto& statement : in.at("checked")) {
    checked_.emplace(kept_name(statement.at(0).get<std::string>()), statement.at(1).get<int>());
  }
  left_out_ += in.at("left_out").get<std::uint64_t>();
}

void FailedCheck::operator=(const testing::Message& more) const noexcept(false) {
  const std::string added = more.GetString();
  Findings::here().add({file_, line_, added.empty() ? text_ : text_ + "\n  " + added});
  if (fatal_) throw Stop{};
}

namespace detail {

testing::AssertionResult truth(const char* text, bool value) {
  if (value) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "does not hold: " << text;
}

testing::AssertionResult comparison(bool holds, const char* found_text, const char* relation,
                                    const char* expected_text, const std::string& found,
                                    const std::string& expected) {
  if (holds) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "does not hold: " << found_text << ' ' << relation << ' '
                                     << expected_text << "\n  left:  " << found << "\n  right: " << expected;
}

}  // namespace detail
}  // namespace conformance
