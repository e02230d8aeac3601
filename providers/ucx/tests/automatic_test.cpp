// SEL-1 with the plug-in as it is built: what is left to automatic choice is never UCX's TCP, whose port lets
// strangers write (SEC-3), not even when nothing else can run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "weft/weft.hpp"

namespace weft {
namespace {

// Every provider but this one.
std::string all_others() {
  std::string list;
  for (const ProviderReport& provider : list_providers()) {
    if (provider.name == "ucx" || provider.decorator) continue;
    list += (list.empty() ? "^" : ",") + provider.name;
  }
  return list;
}

TEST(AutomaticChoice, TakesNothingRatherThanUcxsTcp) {
  ASSERT_EQ(setenv("UCX_TLS", "tcp", 1), 0);
  ASSERT_EQ(setenv("WEFT_PROVIDER", all_others().c_str(), 1), 0);
  bool could_run = false;
  for (const ProviderReport& provider : list_providers())
    for (const FabricReport& fabric : provider.fabrics)
      could_run = could_run || (provider.name == "ucx" && fabric.name == "tcp" && fabric.usable);
  ASSERT_TRUE(could_run) << "so it proves nothing";
  try {
    const Context context = Context::open();
    ADD_FAILURE() << "took " << context.attributes().provider << " on " << context.attributes().fabric;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::unavailable) << error.what();
    EXPECT_NE(std::string(error.what()).find("ucx:tcp"), std::string::npos) << error.what();
  }
  // By name it is there.
  ASSERT_EQ(setenv("WEFT_PROVIDER", "ucx:tcp", 1), 0);
  EXPECT_EQ(Context::open().attributes().trust, Trust::whoever_reaches_the_port);
  ASSERT_EQ(unsetenv("UCX_TLS"), 0);
  ASSERT_EQ(unsetenv("WEFT_PROVIDER"), 0);
}

TEST(AutomaticChoice, TrustsNoPort) {
  ASSERT_EQ(setenv("WEFT_PROVIDER", all_others().c_str(), 1), 0);
  const Context context = Context::open();  // shared memory, or an adapter
  EXPECT_EQ(context.attributes().provider, "ucx");
  EXPECT_NE(context.attributes().trust, Trust::whoever_reaches_the_port) << context.attributes().fabric;
  ASSERT_EQ(unsetenv("WEFT_PROVIDER"), 0);
}

}  // namespace
}  // namespace weft
