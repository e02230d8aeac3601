#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "listener.hpp"

namespace weft::ucx {
namespace {

using Bytes = std::array<std::byte, MeetingPlace::size>;

TEST(MeetingPlaces, ComeBackAsTheyWere) {
  Bytes bytes{};
  MeetingPlace{0x1122334455667788, 0x1234}.encode(bytes);
  const auto place = MeetingPlace::decode(bytes);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->number, 0x1122334455667788U);
  EXPECT_EQ(place->port, 0x1234);
}

TEST(MeetingPlaces, MalformedOnesAreRefused) {
  Bytes bytes{};
  EXPECT_FALSE(MeetingPlace::decode(bytes)) << "no number, no port";
  MeetingPlace{0, 7}.encode(bytes);
  EXPECT_FALSE(MeetingPlace::decode(bytes));
  MeetingPlace{7, 0}.encode(bytes);
  EXPECT_FALSE(MeetingPlace::decode(bytes));
  MeetingPlace{7, 7}.encode(bytes);
  EXPECT_TRUE(MeetingPlace::decode(bytes));
  std::vector<std::byte> longer(bytes.begin(), bytes.end());
  longer.push_back(std::byte{0});
  EXPECT_FALSE(MeetingPlace::decode(longer));
  EXPECT_FALSE(MeetingPlace::decode(std::span(longer).first(3)));
}

}  // namespace
}  // namespace weft::ucx
