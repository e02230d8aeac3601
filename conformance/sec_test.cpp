// SEC-2, SEC-3: keys, and who must be trusted.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/side.hpp"

namespace conformance {
namespace {

using weft::Access;

CONFORMANCE_TEST(SEC, 2, keys_differ_and_are_not_reused, alone) {
  weft::Context context = test.open_context();
  const GuardedBuffer buffer(4096);
  std::set<std::string> keys;
  std::vector<weft::MemoryRegion> alive;
  constexpr int count = 1000;
  for (int i = 0; i < count; ++i) {
    weft::MemoryRegion region = context.register_memory(buffer.bytes(), Access::remote_write);
    keys.insert(std::string(reinterpret_cast<const char*>(region.key().data()), region.key().size()));
    if (i % 2 == 0) alive.push_back(region);
  }
  CHECK_EQ(keys.size(), count);
}

// Bytes of the key that never change between registrations cannot be guessed from a neighbour, those that do
// must do so in more than a counter's way.
CONFORMANCE_TEST(SEC, 2, a_neighbours_key_does_not_help_to_guess, alone) {
  weft::Context context = test.open_context();
  const GuardedBuffer buffer(4096);
  std::vector<std::string> keys;
  std::vector<weft::MemoryRegion> alive;
  for (int i = 0; i < 64; ++i) {
    alive.push_back(context.register_memory(buffer.bytes(), Access::remote_write));
    keys.emplace_back(reinterpret_cast<const char*>(alive.back().key().data()), alive.back().key().size());
  }
  // At random, half of the bits that can change do from one key to the next: 32 at least, for 64 unknown
  // bits.
  for (std::size_t i = 1; i < keys.size(); ++i) {
    REQUIRE_EQ(keys[i].size(), keys[0].size());
    int changed = 0;
    for (std::size_t at = 0; at < keys[i].size(); ++at) {
      changed += __builtin_popcount(static_cast<unsigned char>(keys[i][at] ^ keys[i - 1][at]));
    }
    CHECK_GE(changed, 12) << "keys " << i - 1 << " and " << i << " differ in few bits";
  }
  // Hardware keys are short, and that is declared (SEC-3). Others: a number of 64 bits is hard to guess, and
  // a sum over the key of as many bits, which everybody can compute, varies with it.
  if (context.attributes().trust == weft::Trust::connected_peers) return;
  int varying = 0;
  for (std::size_t at = 0; at < keys[0].size(); ++at) {
    unsigned char varies = 0;
    for (const std::string& key : keys) varies |= static_cast<unsigned char>(key[at] ^ keys[0][at]);
    varying += __builtin_popcount(varies);
  }
  CHECK_GE(varying, 128) << "bits of the keys that are not always the same";
}

// From cold: libraries that are asked for their fabrics may keep devices open for the life of the process.
CONFORMANCE_TEST(SEC, 3, the_fabric_says_whom_it_trusts, from_cold) {
  const weft::Context context = test.open_context();
  const std::string text = context.attributes().trust_text;
  CHECK(!text.empty());
  // No fabric here encrypts: that is said in so many words, and who is believed.
  CHECK(text.find("othing is encrypted") != std::string::npos ||
        text.find("not encrypted") != std::string::npos)
      << text;
  CHECK(text.find("authenticated") != std::string::npos || text.find("believed") != std::string::npos ||
        text.find("answers whoever") != std::string::npos)
      << text;
  // A decorated provider is not listed; what it wraps is.
  const std::string selector = test.setting().selector();
  const std::string undecorated = selector.substr(selector.rfind('+') + 1);
  const std::size_t colon = undecorated.find(':');
  const std::string innermost = undecorated.substr(0, colon);
  const std::string wanted = colon == std::string::npos ? "" : undecorated.substr(colon + 1);
  std::optional<weft::Trust> listed;
  for (const weft::ProviderReport& provider : weft::list_providers()) {
    for (const weft::FabricReport& fabric : provider.fabrics) {
      if (provider.name == innermost && (wanted.empty() || fabric.name == wanted)) listed = fabric.trust;
    }
  }
  REQUIRE(listed.has_value()) << innermost << " is not listed";
  CHECK(*listed == context.attributes().trust);
}

}  // namespace
}  // namespace conformance
