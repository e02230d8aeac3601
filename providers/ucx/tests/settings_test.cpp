#include "settings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "weft/status.hpp"

namespace weft::ucx {
namespace {

using namespace std::chrono_literals;

std::optional<std::string> value_of(const std::string& key, std::string_view transports,
                                    std::chrono::milliseconds peer_timeout = 10s) {
  for (const Setting& setting : settings_for(transports, peer_timeout))
    if (setting.key == key) return setting.value;
  return std::nullopt;
}

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(Settings, AreThoseOfTheTransportsInUse) {
  EXPECT_EQ(value_of("CONN_NB", "tcp"), "y");
  EXPECT_EQ(value_of("CONN_NB", "posix,sysv"), std::nullopt);
  ASSERT_EQ(settings_for("sysv", 10s).size(), 2U);
  for (const Setting& setting : settings_for("sysv", 10s))
    EXPECT_TRUE(setting.key.starts_with("MM_")) << setting.key;
  EXPECT_EQ(value_of("SOCKADDR_TLS_PRIORITY", "rc_mlx5"), "rdmacm");
  EXPECT_EQ(value_of("SOCKADDR_TLS_PRIORITY", "tcp"), std::nullopt);
  EXPECT_TRUE(settings_for("cma", 10s).empty());
}

TEST(Settings, TheUsersVariableWinsUnderAnyOfItsNames) {
  for (const char* name : {"UCX_RC_RETRY_COUNT", "UCX_RC_VERBS_RETRY_COUNT"}) {
    const Variable set(name, "3");
    EXPECT_EQ(value_of("RC_RETRY_COUNT", "rc_verbs"), std::nullopt) << name;
    EXPECT_NE(value_of("RC_TIMEOUT", "rc_verbs"), std::nullopt) << name;
  }
  // That of a transport which is not in use says nothing.
  const Variable set("UCX_RC_MLX5_RETRY_COUNT", "3");
  EXPECT_EQ(value_of("RC_RETRY_COUNT", "rc_verbs"), "6");
  EXPECT_EQ(value_of("RC_RETRY_COUNT", "rc_verbs,rc_mlx5"), std::nullopt);
}

TEST(Settings, AnEmptyVariableIsNone) {
  const Variable set("UCX_TCP_CONN_NB", "");
  EXPECT_EQ(value_of("CONN_NB", "tcp"), "y");
}

TEST(Settings, RetriesEndWellWithinThePeersTime) {
  constexpr auto tries = 7;
  for (const std::chrono::milliseconds time : {1000ms, 3000ms, 10'000ms, 60'000ms})
    EXPECT_LE(acknowledge_timer(time) * tries, time / 6) << time.count();
  EXPECT_EQ(acknowledge_timer(10s), 134'217us);
  EXPECT_EQ(value_of("RC_TIMEOUT", "rc_verbs"), "134217us");
  // Neither so short that a busy processor is taken for a dead one, nor longer than UCX waits by itself.
  EXPECT_EQ(acknowledge_timer(100ms), 16'777us);
  EXPECT_EQ(acknowledge_timer(1h), 1'073'741us);
}

}  // namespace
}  // namespace weft::ucx
