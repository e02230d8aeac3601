// Settings of UCX's that the transports need. A variable of the user's with the same meaning wins.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace weft::ucx {

struct Setting {
  std::string key;  // as ucp_config_modify takes it
  std::string value;
};

// Those for these transports, without what the environment says itself: by the variable named as the key
// (UCX_RC_TIMEOUT), or as one of the transports that share it (UCX_RC_VERBS_TIMEOUT).
[[nodiscard]] std::vector<Setting> settings_for(std::string_view transports,
                                                std::chrono::milliseconds peer_timeout);

// How long an adapter waits for an acknowledgement before it sends again.
[[nodiscard]] std::chrono::microseconds acknowledge_timer(std::chrono::milliseconds peer_timeout) noexcept;

}  // namespace weft::ucx
