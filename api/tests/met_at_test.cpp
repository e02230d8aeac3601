// SEL-2: where a context's device is met at one address, nobody can listen at another (CON-1).
#include <gtest/gtest.h>

#include <string>

#include "fake_provider.hpp"
#include "pair.hpp"

namespace weft::test {
namespace {

struct At {
  explicit At(std::string address, bool there_only)
      : open(open_fake({.local_address = std::move(address), .met_there_only = there_only})),
        queue(open.context.create_completion_queue()) {}
  Listener listen(const char* where) { return open.context.listen(where, {.queue = queue}); }

  FakeOpen open;
  CompletionQueue queue;
};

TEST(MetAt, AnotherAddressIsRefusedWithTheOneThatIsIt) {
  At bound("127.0.0.1", true);
  for (const char* other : {"127.0.0.2:0", "[::1]:0"}) {
    try {
      static_cast<void>(bound.listen(other));
      ADD_FAILURE() << "listens at " << other;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Status::unavailable);
      for (const char* word : {"fake0", "127.0.0.1"})
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  }
}

TEST(MetAt, ItsOwnAndAllOfThemAreTaken) {
  At bound("127.0.0.1", true);
  EXPECT_NE(bound.listen("127.0.0.1:0").port(), 0);
  EXPECT_NE(bound.listen("localhost:0").port(), 0);
  EXPECT_NE(bound.listen(":0").port(), 0);
}

TEST(MetAt, OtherDevicesTakeAny) {
  for (const char* address : {"", "any", "127.0.0.1"}) {
    At open(address, false);
    EXPECT_NE(open.listen("127.0.0.2:0").port(), 0);
  }
}

}  // namespace
}  // namespace weft::test
