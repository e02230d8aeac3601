// The address of a UCX worker as it comes from a peer: hostile until it is seen to be harmless, since UCX
// takes it apart without looking where it ends, and ends the process over a wrong version (SEC-1).
//
// Known here is UCX's address version 1, which every release since 1.8 writes unless it is told otherwise.
// What varies between workers is let through: their numbers, ports, IP addresses, speeds, and which of the
// transports they have. All else must be as in this side's own address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft::ucx {

// One transport of a device of a worker.
struct AddressEntry {
  std::uint16_t transport = 0;  // UCX's checksum of its name
  std::uint32_t capabilities = 0;
  std::vector<std::byte> device;
  std::vector<std::byte> interface;
};

// An address taken apart; empty when it is not of the known form.
struct WorkerAddress {
  std::byte header{};
  std::vector<AddressEntry> entries;

  [[nodiscard]] static bool parse(std::span<const std::byte> bytes, WorkerAddress& out);
};

// Why UCX must not see the address `peer`, given this side's own; empty when it may.
[[nodiscard]] std::string why_not(std::span<const std::byte> own, std::span<const std::byte> peer);

// Both are addresses of workers without a network, and shared memory does not reach from one to the other.
[[nodiscard]] bool elsewhere(std::span<const std::byte> own, std::span<const std::byte> peer);

}  // namespace weft::ucx
