#include "harness/test.hpp"

#include <nlohmann/json.hpp>

namespace conformance {

std::vector<TestCase>& all_tests() {
  static auto* tests = new std::vector<TestCase>;
  return *tests;
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
                        {"kind", static_cast<int>(kind_)},
                        {"seed", seed_},
                        {"long_run", long_run_}}
      .dump();
}

Test Test::unpacked(const std::string& packed) {
  const auto in = nlohmann::json::parse(packed);
  return {in.at("index").get<std::size_t>(),
          {in.at("provider"), in.at("fabric"), static_cast<weft::ThreadMode>(in.at("threads").get<int>())},
          static_cast<PeerKind>(in.at("kind").get<int>()),
          in.at("seed").get<std::uint64_t>(),
          in.at("long_run").get<bool>()};
}

}  // namespace conformance
