#include "harness/test.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace conformance {

std::vector<TestCase>& all_tests() {
  static auto* tests = new std::vector<TestCase>;
  return *tests;
}

const char* to_text(FabricClass fabric_class) {
  switch (fabric_class) {
    case FabricClass::native:
      return "native";
    case FabricClass::shared_memory:
      return "shared memory";
    case FabricClass::emulated:
      return "emulated";
  }
  return "native";
}

FabricClass class_of(const std::string& provider, const std::string& fabric) {
  static const bool emulated = [] {
    std::ifstream processor("/proc/cpuinfo");
    for (std::string line; std::getline(processor, line);) {
      if (line.starts_with("model name")) return line.find("QEMU TCG") != std::string::npos;
    }
    return false;
  }();
  if (emulated) return FabricClass::emulated;
  const std::string innermost = provider.substr(provider.rfind('+') + 1);
  const bool shared = fabric == "shm" || fabric.starts_with("fake") || innermost == "unix";
  return shared ? FabricClass::shared_memory : FabricClass::native;
}

namespace {

// What one test may spend: bytes, and rounds of those it wants.
struct Budget {
  std::uint64_t bytes;
  std::uint64_t one_round_in;
};
constexpr Budget budget_of(FabricClass fabric_class) {
  constexpr std::uint64_t mebibyte = 1 << 20;
  if (fabric_class == FabricClass::emulated) return {8 * mebibyte, 8};
  if (fabric_class == FabricClass::shared_memory) return {1024 * mebibyte, 1};
  return {512 * mebibyte, 1};
}

}  // namespace

std::uint64_t Test::rounds(std::uint64_t wanted, std::uint64_t bytes_each) const {
  constexpr std::uint64_t least = 16;
  const Budget budget = budget_of(setting_.fabric_class);
  const std::uint64_t scale = long_run_ ? 16 : 1;  // whoever asks for it has the time
  const std::uint64_t by_bytes = scale * budget.bytes / std::max<std::uint64_t>(bytes_each, 1);
  const std::uint64_t by_count = long_run_ ? wanted : wanted / budget.one_round_in;
  return std::min(wanted, std::max(least, std::min(by_bytes, by_count)));
}

bool add_test(TestCase test) {
  all_tests().push_back(std::move(test));
  return true;
}

std::string Setting::text() const {
  return selector() + '/' + (threads == weft::ThreadMode::single ? "single" : "safe");
}

weft::ContextOptions Test::context_options(std::chrono::milliseconds peer_timeout) const {
  weft::ContextOptions options;
  options.provider = setting_.selector();
  options.thread_mode = setting_.threads;
  options.peer_timeout = peer_timeout;
  return options;
}

std::string Test::packed() const {
  return nlohmann::json{{"index", index_},
                        {"provider", setting_.provider},
                        {"fabric", setting_.fabric},
                        {"threads", static_cast<int>(setting_.threads)},
                        {"class", static_cast<int>(setting_.fabric_class)},
                        {"kind", static_cast<int>(kind_)},
                        {"seed", seed_},
                        {"long_run", long_run_}}
      .dump();
}

Test Test::unpacked(const std::string& packed) {
  const auto in = nlohmann::json::parse(packed);
  return {in.at("index").get<std::size_t>(),
          {in.at("provider"), in.at("fabric"), static_cast<weft::ThreadMode>(in.at("threads").get<int>()),
           static_cast<FabricClass>(in.at("class").get<int>())},
          static_cast<PeerKind>(in.at("kind").get<int>()),
          in.at("seed").get<std::uint64_t>(),
          in.at("long_run").get<bool>()};
}

}  // namespace conformance
