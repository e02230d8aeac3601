#include "wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace perf::remote {
namespace {

constexpr const char* version_name = "weft_perf";
constexpr std::size_t longest_text = 4096;
constexpr double longest_run = 7 * 86'400;
constexpr std::uint64_t most_operations = std::uint64_t{1} << 48;

const Json& member(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) throw Unintelligible(fmt::format("'{}' is missing in what came", name));
  return *found;
}

std::string_view to_string(weft::ThreadMode mode) {
  return mode == weft::ThreadMode::single ? "single" : "safe";
}

}  // namespace

Json parse_object(std::span<const std::byte> bytes) {
  if (bytes.size() > longest_text) throw Unintelligible("more came than any message of weft-perf has");
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  Json json = Json::parse(text, text + bytes.size(), nullptr, false);
  if (!json.is_object() || !json.contains(version_name))
    throw Unintelligible("what came is not of weft-perf");
  const Json& version = json[version_name];
  if (!version.is_number_integer() || version != wire_version) {
    throw Unintelligible(fmt::format(
        "one side speaks version {} of weft-perf's protocol, the other {}: use the same weft on both",
        wire_version, version.is_number_integer() ? version.dump() : "none"));
  }
  return json;
}

std::uint64_t number_of(const Json& object, const char* name, std::uint64_t largest) {
  const Json& value = member(object, name);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > largest) {
    throw Unintelligible(fmt::format("'{}' is not a whole number from 0 to {}", name, largest));
  }
  return value.get<std::uint64_t>();
}

double real_of(const Json& object, const char* name, double largest) {
  const Json& value = member(object, name);
  if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= largest)) {
    throw Unintelligible(fmt::format("'{}' is not a number from 0 to {}", name, largest));
  }
  return value.get<double>();
}

bool flag_of(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (!value.is_boolean()) throw Unintelligible(fmt::format("'{}' is neither true nor false", name));
  return value.get<bool>();
}

std::string text_of(const Json& object, const char* name) {
  const Json& value = member(object, name);
  if (!value.is_string()) throw Unintelligible(fmt::format("'{}' is no text", name));
  return value.get<std::string>();
}

std::string hello_text(const Hello& hello) {
  return Json{{version_name, wire_version}, {"threads", to_string(hello.threads)}}.dump();
}

Hello parse_hello(std::span<const std::byte> bytes) {
  const std::string threads = text_of(parse_object(bytes), "threads");
  if (threads != "safe" && threads != "single")
    throw Unintelligible("'threads' is neither 'safe' nor 'single'");
  return {threads == "single" ? weft::ThreadMode::single : weft::ThreadMode::safe};
}

std::string row_text(const Row& row, const std::string& token, std::span<const std::byte> key) {
  return Json{{version_name, wire_version},
              {"token", token},
              {"key", hexadecimal(key)},
              {"operation", remote::to_string(row.kind)},
              {"test", remote::to_string(row.test)},
              {"size", row.size},
              {"depth", row.depth},
              {"batch", row.batch},
              {"endpoints", row.endpoints},
              {"bidirectional", row.bidirectional},
              {"events", row.events},
              {"check", row.check}}
      .dump();
}

Row parse_row(const Json& json) {
  const auto small = [&](const char* name) {
    return static_cast<std::uint32_t>(number_of(json, name, 0xffffffff));
  };
  Row row;
  row.kind = parse_kind(printable(text_of(json, "operation")));
  row.test = parse_test(printable(text_of(json, "test")));
  row.size = number_of(json, "size", largest_size);
  row.depth = small("depth");
  row.batch = small("batch");
  row.endpoints = small("endpoints");
  row.bidirectional = flag_of(json, "bidirectional");
  row.events = flag_of(json, "events");
  row.check = flag_of(json, "check");
  return row;
}

Json amount_json(const Amount& amount) {
  return {{"operations", amount.operations}, {"seconds", amount.seconds}};
}

Amount parse_amount(const Json& json) {
  const Amount amount{number_of(json, "operations", most_operations), real_of(json, "seconds", longest_run)};
  if ((amount.operations == 0) == (amount.seconds == 0)) {
    throw Unintelligible("either 'operations' or 'seconds' must be given, not both");
  }
  return amount;
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

std::vector<std::byte> from_hexadecimal(std::string_view text) {
  const auto digit = [](char letter) {
    if (letter >= '0' && letter <= '9') return letter - '0';
    if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
    throw Unintelligible("a key is not in hexadecimal digits");
  };
  if (text.size() % 2 != 0) throw Unintelligible("a key is cut off");
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(digit(text[i]) * 16 + digit(text[i + 1])));
  }
  return bytes;
}

std::string printable(std::string_view text) {
  constexpr std::size_t longest = 600;
  std::string result(text.substr(0, longest));
  std::replace_if(
      result.begin(), result.end(), [](unsigned char letter) { return letter < 0x20 || letter >= 0x7f; },
      '?');
  return result;
}

}  // namespace perf::remote
