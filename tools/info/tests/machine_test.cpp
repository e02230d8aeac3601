// What weft-info says about a machine, with kernel folders made up here.
#include "machine.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace info {
namespace {

namespace files = std::filesystem;

class Machines : public ::testing::Test {
 protected:
  Machines() {
    std::string name = files::temp_directory_path() / "weft-info-XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  ~Machines() override { files::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    files::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }
  void add_device(const std::string& state) const {
    write("sys/class/infiniband/rxe0/ports/1/link_layer", "Ethernet");
    write("sys/class/infiniband/rxe0/ports/1/state", state);
  }
  void add_node() const {
    write("sys/class/infiniband_verbs/uverbs3/ibdev", "rxe0");
    write("dev/infiniband/uverbs3", "");
  }

  files::path root_;
};

TEST_F(Machines, WithoutRdmaThereIsNothingToSayAboutIt) {
  Machine machine = look_at_machine(root_);
  EXPECT_TRUE(machine.rdma_devices.empty());
  // However little may be locked: nothing needs it.
  machine.locked_memory = {64 * 1024, 64 * 1024};
  machine.open_files = {1024, 1 << 20};
  EXPECT_TRUE(obstacles(machine).empty());
}

TEST_F(Machines, ADeviceIsFoundWithItsNodeAndState) {
  add_device("4: ACTIVE");
  add_node();
  Machine machine = look_at_machine(root_);
  ASSERT_EQ(machine.rdma_devices.size(), 1U);
  const RdmaDevice& device = machine.rdma_devices[0];
  EXPECT_EQ(device.name, "rxe0");
  EXPECT_EQ(device.node, "/dev/infiniband/uverbs3");
  EXPECT_EQ(device.link_layer, "Ethernet");
  EXPECT_EQ(device.state, "ACTIVE");
  EXPECT_TRUE(device.permitted);
  machine.locked_memory = {};
  machine.open_files = {};
  EXPECT_TRUE(obstacles(machine).empty());
}

TEST_F(Machines, ADeviceThatIsDownOrHasNoNodeIsExplained) {
  add_device("1: DOWN");
  Machine machine = look_at_machine(root_);
  machine.locked_memory = {};
  machine.open_files = {};
  const auto found = obstacles(machine);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NE(found[0].finding.find("rxe0 has no node"), std::string::npos);
  EXPECT_NE(found[0].remedy.find("ib_uverbs"), std::string::npos);
  EXPECT_NE(found[1].finding.find("DOWN"), std::string::npos);
  EXPECT_NE(found[1].remedy.find("ip link set"), std::string::npos);
}

TEST_F(Machines, AMissingPermissionIsExplained) {
  Machine machine;
  machine.rdma_devices.push_back({"mlx5_0", "/dev/infiniband/uverbs0", "InfiniBand", "ACTIVE", false});
  const auto found = obstacles(machine);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].finding.find("no permission for /dev/infiniband/uverbs0"), std::string::npos);
  EXPECT_NE(found[0].remedy.find("group"), std::string::npos);
}

TEST_F(Machines, TheLimitOfLockedMemoryIsNamedWithItsValue) {
  Machine machine;
  machine.rdma_devices.push_back({"mlx5_0", "/dev/infiniband/uverbs0", "InfiniBand", "ACTIVE", true});
  machine.locked_memory = {std::uint64_t{8} << 20U, std::uint64_t{16} << 20U};
  const auto found = obstacles(machine);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].finding.find("limited to 8 MiB"), std::string::npos) << found[0].finding;
  EXPECT_NE(found[0].remedy.find("ulimit -l"), std::string::npos);
  EXPECT_NE(found[0].remedy.find("16 MiB"), std::string::npos) << found[0].remedy;
}

TEST_F(Machines, FewOpenFilesAreExplained) {
  Machine machine;
  machine.open_files = {256, 512};
  const auto found = obstacles(machine);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].finding.find("512"), std::string::npos);
}

TEST(Bytes, AreToldInTheLargestUnitThatKeepsThemExact) {
  EXPECT_EQ(bytes_text(std::uint64_t{1} << 40U), "1 TiB");
  EXPECT_EQ(bytes_text(65537), "65537 bytes");
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text({}), "unlimited");
}

}  // namespace
}  // namespace info
