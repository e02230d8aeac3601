#include "rdma_device.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

#include "weft/status.hpp"

namespace weft::ucx {
namespace {

namespace files = std::filesystem;

// What the kernel tells of devices, made by hand.
class Folder {
 public:
  Folder() : root_(files::temp_directory_path() / ("weft-rdma-device-" + std::to_string(::getpid()))) {}
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { files::remove_all(root_); }

  void write(const std::string& file, const std::string& line) const {
    files::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << line << '\n';
  }
  [[nodiscard]] std::string path() const { return root_.string(); }

 private:
  files::path root_;
};

template <class Plain>
sockaddr_in6 mapped_of(const Plain& address) {
  return mapped({reinterpret_cast<const std::byte*>(&address), sizeof address});
}

sockaddr_in old_address(std::uint32_t address) {
  sockaddr_in plain{};
  plain.sin_family = AF_INET;
  plain.sin_port = htons(7);
  plain.sin_addr.s_addr = htonl(address);
  return plain;
}

TEST(RdmaDevice, InterfacesAreThoseOfItsAddresses) {
  const Folder folder;
  folder.write("rxe0/ports/1/gid_attrs/ndevs/0", "data");
  folder.write("rxe0/ports/1/gid_attrs/ndevs/1", "data");
  folder.write("rxe0/ports/1/gid_attrs/ndevs/2", "data.7");
  folder.write("rxe0/device/net/other/mtu", "1500");
  EXPECT_EQ(interfaces_of("rxe0:1", folder.path()), (std::vector<std::string>{"data", "data.7"}));
  EXPECT_TRUE(interfaces_of("rxe1:1", folder.path()).empty());
}

TEST(RdmaDevice, InterfacesOfInfinibandStandWithTheAdapter) {
  const Folder folder;
  folder.write("mlx5_0/ports/1/gids/0", "fe80::1");
  folder.write("mlx5_0/device/net/ib0/mtu", "2044");
  EXPECT_EQ(interfaces_of("mlx5_0:1", folder.path()), std::vector<std::string>{"ib0"});
}

TEST(RdmaDevice, OneThatIsNotThereIsNamedWithThoseThatAre) {
  const std::vector<Transport> found{{"rc_verbs", "none0:1"}, {"tcp", "eth0"}};
  try {
    static_cast<void>(choose_device(found, "mlx5_7"));
    FAIL() << "was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::not_found);
    for (const auto* word : {"'mlx5_7'", "none0:1"})
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
  try {
    static_cast<void>(choose_device(found, "none0"));
    FAIL() << "has an address";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::unavailable);
  }
}

TEST(RdmaDevice, IsMetAtTheAddressWishedForOrNotAtAll) {
  const Folder folder;
  folder.write("none0/ports/1/gid_attrs/ndevs/0", "lo");
  const std::vector<Transport> found{{"rc_verbs", "none0:1"}};
  const auto chosen_at = [&](const sockaddr_in& address) {
    return choose_device(found, "lo", {reinterpret_cast<const std::byte*>(&address), sizeof address},
                         folder.path());
  };
  EXPECT_EQ(ip_text(choose_device(found, "", {}, folder.path()).address), "127.0.0.1");
  EXPECT_EQ(ip_text(chosen_at(old_address(0x7f000001)).address), "127.0.0.1");
  try {
    static_cast<void>(chosen_at(old_address(0xc0000207)));
    FAIL() << "is met at an address that it does not have";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Status::unavailable);
    for (const auto* word : {"none0:1", "192.0.2.7"})
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST(RdmaDevice, AddressesOfBothFamiliesAreAlike) {
  const sockaddr_in6 mapped_one = mapped_of(old_address(0x0a4d0001));
  EXPECT_EQ(ip_text(mapped_one), "10.77.0.1");
  EXPECT_EQ(plain(mapped_one).storage.ss_family, AF_INET);
  EXPECT_TRUE(same_ip(mapped_of(mapped_one), mapped_one));
  EXPECT_FALSE(is_loopback(mapped_one));
  EXPECT_TRUE(is_loopback(mapped_of(old_address(0x7f000002))));
  sockaddr_in6 long_one{};
  long_one.sin6_family = AF_INET6;
  long_one.sin6_addr = in6addr_loopback;
  EXPECT_TRUE(is_loopback(mapped_of(long_one)));
  EXPECT_EQ(plain(long_one).storage.ss_family, AF_INET6);
  EXPECT_EQ(mapped({}).sin6_family, AF_UNSPEC);
}

}  // namespace
}  // namespace weft::ucx
