#include "lanes.hpp"

#include <gtest/gtest.h>

#include "weft/status.hpp"

namespace weft::ucx {
namespace {

TEST(Lanes, AreFoundByName) {
  EXPECT_STREQ(lanes_named("tcp").transports, "tcp");
  EXPECT_STREQ(lanes_named("").name, "");
}

TEST(Lanes, UnknownOnesAreRefusedWithThoseThatExist) {
  try {
    static_cast<void>(lanes_named("carrier-pigeon"));
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::not_found);
    const std::string text = error.what();
    for (const auto* word : {"carrier-pigeon", "ucx:tcp", "ucx:shm"})
      EXPECT_NE(text.find(word), std::string::npos) << text;
  }
}

TEST(Lanes, WhoeverReachesThePortIsTrustedWhereUcxListens) {
  for (const Lanes& lanes : all_lanes()) {
    const bool has_tcp = std::string_view(lanes.transports).find("tcp") != std::string_view::npos;
    const bool listens = has_tcp || lanes.wire_up == WireUp::listener;
    EXPECT_EQ(lanes.trust == Trust::whoever_reaches_the_port, listens) << lanes.name;
    EXPECT_STRNE(lanes.trust_text, "");
  }
}

TEST(Lanes, TheUsersListIsRespected) {
  const Lanes& shm = lanes_named("shm");
  EXPECT_EQ(restricted(shm, ""), "posix,sysv,cma");
  EXPECT_EQ(restricted(shm, "all"), "posix,sysv,cma");
  EXPECT_EQ(restricted(shm, "tcp,posix"), "posix");
  EXPECT_EQ(restricted(shm, "mm,rc"), "posix,sysv");
  EXPECT_EQ(restricted(shm, "^posix"), "sysv,cma");
  EXPECT_EQ(restricted(shm, "^shm"), "");
  EXPECT_EQ(restricted(shm, "tcp"), "");
  EXPECT_EQ(restricted(lanes_named(""), "^sm"), "tcp");
}

TEST(Lanes, ListsSplitAndJoin) {
  EXPECT_EQ(split_list("a,,b"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(split_list("").empty());
  EXPECT_EQ(join_list({"a", "b"}, ", "), "a, b");
}

}  // namespace
}  // namespace weft::ucx
