#include "holdings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace perf {
namespace {

namespace fs = std::filesystem;

std::uint64_t entries_of(const char* folder) {
  return static_cast<std::uint64_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

std::uint64_t lines_of(const char* file) {
  std::ifstream stream(file);
  return static_cast<std::uint64_t>(
      std::count(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>(), '\n'));
}

struct ClosePipe {
  void operator()(FILE* pipe) const noexcept { pclose(pipe); }
};

// The kernel's RDMA devices have an entry here; one made of software in user space does not.
bool has_rdma_devices() {
  std::error_code none;
  const fs::directory_iterator first("/sys/class/infiniband", none);
  return !none && first != fs::directory_iterator();
}

void add_rdma_resources(Holdings& holdings) {
  const std::unique_ptr<FILE, ClosePipe> pipe(
      popen("PATH=\"$PATH:/usr/sbin:/sbin\" rdma -j resource show", "re"));
  std::string text;
  std::array<char, 4096> piece{};
  while (pipe && fgets(piece.data(), piece.size(), pipe.get()) != nullptr) text += piece.data();
  const nlohmann::json devices = nlohmann::json::parse(text, nullptr, false);
  if (!devices.is_array() || devices.empty())
    throw std::runtime_error(
        "'rdma -j resource show' (Debian package iproute2) does not tell what is in use: " + text);
  for (const nlohmann::json& device : devices) {
    for (const char* kind : {"pd", "cq", "qp", "mr", "ctx", "srq"}) {
      if (!device.contains(kind)) continue;  // kernels know more kinds as they get newer
      holdings[fmt::format("{} {}", device.at("ifname").get<std::string>(), kind)] =
          device.at(kind).get<std::uint64_t>();
    }
  }
}

}  // namespace

Holdings count_holdings() {
  Holdings holdings;
  if (has_rdma_devices()) add_rdma_resources(holdings);
  holdings["descriptors"] = entries_of("/proc/self/fd");
  holdings["threads"] = entries_of("/proc/self/task");
  holdings["mappings"] = lines_of("/proc/self/maps");
  return holdings;
}

std::string to_text(const Holdings& holdings) {
  std::string text;
  for (const auto& [name, count] : holdings)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  return text;
}

}  // namespace perf
