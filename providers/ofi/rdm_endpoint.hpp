// An endpoint of libfabric with a domain, a completion queue and an address vector of its own, so that it
// shares nothing and needs no lock.
#pragma once

#include <cstdint>
#include <vector>

#include "device.hpp"

namespace weft::ofi {

struct RdmEndpoint {
  // `waits`: with a descriptor to sleep on. Throws Error.
  RdmEndpoint(const Device& device, InfoHandle description, fi_cq_format format, bool waits);
  // From here on libfabric touches nothing that was given to this endpoint.
  void close() noexcept;
  // In a forked child: it stays the parent's.
  void abandon() noexcept;
  // Throws Error.
  [[nodiscard]] fi_addr_t insert(const std::vector<std::byte>& address);
  // Nothing is there, and what comes makes the descriptor readable, if there is one.
  [[nodiscard]] bool may_sleep(const Device& device) noexcept;

  InfoHandle info;
  Handle<fid_domain> domain;
  std::vector<Handle<fid_mr>> registrations;
  Handle<fid_cq> completions;
  Handle<fid_av> addresses;
  Handle<fid_ep> endpoint;
  std::vector<std::byte> name;  // its address, as libfabric tells it
  int descriptor = -1;          // to sleep on; -1: none
};

}  // namespace weft::ofi
