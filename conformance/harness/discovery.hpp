// Which providers and fabrics can run here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/options.hpp"
#include "harness/test.hpp"

namespace conformance {

// One fabric of one provider, asked in a process of its own.
struct Found {
  std::string provider;
  std::string fabric;
  bool usable = false;
  std::string reason;                             // why not
  std::string local_address;                      // "any", or that of the device it is bound to
  std::map<std::string, std::string> deviations;  // rule -> what holds instead

  [[nodiscard]] std::string selector() const { return fabric.empty() ? provider : provider + ':' + fabric; }
};

// Why tests with a peer in another network (network.hpp) cannot run on it here; empty when they can.
[[nodiscard]] std::string obstacle_to_networks(const Found& found);

// The fabrics to check: those named, usable or not; else all usable ones.
[[nodiscard]] std::vector<Found> discover(const Options& options);

}  // namespace conformance
