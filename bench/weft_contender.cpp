#include "weft_contender.hpp"

#include <algorithm>
#include <sstream>
#include <utility>
#include <weft/weft.hpp>

#include "call_client.hpp"
#include "forked_process.hpp"
#include "weft_roles.hpp"

namespace perf {
namespace {

bool is_ping_pong(const Workload& workload) {
  return workload.metric == Metric::latency && workload.level == Level::received;
}

// What the child tells: one name per line, the highest priority first.
std::string list_usable() {
  std::vector<std::pair<int, std::string>> found;
  for (const weft::ProviderReport& provider : weft::list_providers()) {
    for (const weft::FabricReport& fabric : provider.fabrics) {
      if (!fabric.usable) continue;
      const std::string name = fabric.name.empty() ? provider.name : provider.name + ":" + fabric.name;
      found.emplace_back(-fabric.priority, name);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string lines;
  for (const auto& entry : found) lines += entry.second + "\n";
  return lines;
}

}  // namespace

Contender weft_contender(const std::string& provider) {
  return {"weft",
          [provider](const Workload& workload) {
            if (workload.metric == Metric::call) return make_absent_server();
            if (workload.endpoints > 1) return make_weft_crowd_server(provider, workload);
            if (is_ping_pong(workload)) return make_weft_ping_server(provider, workload);
            if (workload.operation == Operation::send) return make_weft_send_server(provider, workload);
            return make_weft_target(provider, workload);
          },
          [provider](const Workload& workload, const std::string& address) {
            if (workload.metric == Metric::call) return make_weft_caller(provider, workload);
            if (workload.endpoints > 1) return make_weft_crowd_client(provider, workload, address);
            if (is_ping_pong(workload)) return make_weft_ping_client(provider, workload, address);
            if (workload.operation == Operation::send)
              return make_weft_send_client(provider, workload, address);
            if (workload.operation == Operation::write)
              return make_weft_write_client(provider, workload, address);
            return make_weft_read_client(provider, workload, address);
          }};
}

std::vector<std::string> usable_providers() {
  std::istringstream lines(in_child_process(list_usable));
  std::vector<std::string> names;
  for (std::string name; std::getline(lines, name);) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace perf
