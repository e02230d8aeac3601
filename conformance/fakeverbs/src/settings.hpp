// What the environment says about the devices: names, addresses, limits, faults.
#pragma once

#include <infiniband/verbs.h>

#include <string>
#include <vector>

#include "fault_plan.hpp"

namespace fakeverbs {

struct DeviceSettings {
  std::string name;
  std::vector<ibv_gid> gids;
};

struct Settings {
  std::string network;  // processes that name the same one see each other
  std::vector<DeviceSettings> devices;
  FaultPlan plan;
  bool null_mode = false;  // send requests complete at once and touch nothing
};

// Read once per process. A value that cannot be understood ends the process with a message: a test that runs
// with other settings than it names would prove nothing.
[[nodiscard]] const Settings& settings();

}  // namespace fakeverbs
