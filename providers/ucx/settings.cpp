#include "settings.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "lanes.hpp"

namespace weft::ucx {

namespace {

// Transports that share a table of settings, and the name it goes by.
struct Family {
  const char* name;
  std::array<std::string_view, 2> transports;
};
constexpr Family shared_memory{"MM", {"posix", "sysv"}};
constexpr Family tcp{"TCP", {"tcp", "tcp"}};
constexpr Family rc{"RC", {"rc_verbs", "rc_mlx5"}};

struct Entry {
  const Family* family;
  bool prefixed;  // the key carries the family's name, as the variable does
  const char* name;
  const char* value;
};

constexpr unsigned retries = 6;  // Soft-RoCE takes seven for "for ever"

constexpr std::array entries{
    // A shared memory endpoint is refused in the error mode that tells of dead peers unless this says
    // otherwise.
    Entry{&shared_memory, true, "ERROR_HANDLING", "y"},
    // Messages of all sizes fit in an element of the shared queue, headers included: so UCX takes them within
    // the call, copied straight from where they lie. Not a multiple of the page, which would let all elements
    // compete for the same lines of the cache.
    Entry{&shared_memory, true, "FIFO_ELEM_SIZE", "8320"},
    Entry{&tcp, false, "TX_SEG_SIZE", "72k"},
    Entry{&tcp, false, "RX_SEG_SIZE", "144k"},
    Entry{&tcp, false, "MAX_NUM_EPS", "inf"},
    Entry{&tcp, false, "CONN_NB", "y"},  // connecting must not block
    Entry{&rc, true, "MAX_NUM_EPS", "inf"},
    // Each worker registers receives of 8 KiB; the usual 4095 would be 34 MB for every completion queue.
    Entry{&rc, true, "RX_QUEUE_LEN", "1024"},
};

// The names under which the user knows the family's settings; none where none of it is in use.
std::vector<std::string> names_of(const Family& family, const std::vector<std::string>& in_use) {
  std::vector<std::string> names;
  for (const std::string& transport : in_use) {
    if (std::find(family.transports.begin(), family.transports.end(), transport) == family.transports.end())
      continue;
    if (names.empty()) names.emplace_back(family.name);
    std::string& own = names.emplace_back();
    for (const char letter : transport)
      own += letter >= 'a' && letter <= 'z' ? char(letter - 'a' + 'A') : letter;
  }
  return names;
}

bool is_said(const std::string& variable) {
  const char* const value = std::getenv(variable.c_str());
  return value != nullptr && *value != '\0';
}

}  // namespace

std::chrono::microseconds acknowledge_timer(std::chrono::milliseconds peer_timeout) noexcept {
  constexpr std::uint64_t unit = 4096;  // ns; adapters know its multiples by powers of two
  constexpr unsigned least = 12;        // 17 ms: a busy processor that does an adapter's work takes its time
  constexpr unsigned greatest = 18;     // 1.1 s, what UCX takes by itself
  const auto most = std::chrono::nanoseconds(peer_timeout / 6);
  unsigned power = least;
  while (power < greatest && std::chrono::nanoseconds((unit << (power + 1)) * (retries + 1)) <= most) ++power;
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::nanoseconds(unit << power));
}

std::vector<Setting> settings_for(std::string_view transports, std::chrono::milliseconds peer_timeout) {
  const std::vector<std::string> in_use = split_list(transports);
  std::vector<Setting> result;
  const auto add = [&](const Family& family, bool prefixed, const std::string& name, std::string value) {
    const std::vector<std::string> names = names_of(family, in_use);
    const bool is_ours = std::none_of(names.begin(), names.end(), [&name](const std::string& family_name) {
      return is_said("UCX_" + family_name + '_' + name);
    });
    if (!names.empty() && is_ours)
      result.push_back({prefixed ? names.front() + '_' + name : name, std::move(value)});
  };
  for (const Entry& entry : entries) add(*entry.family, entry.prefixed, entry.name, entry.value);
  add(rc, true, "TIMEOUT", std::to_string(acknowledge_timer(peer_timeout).count()) + "us");
  add(rc, true, "RETRY_COUNT", std::to_string(retries));
  if (!names_of(rc, in_use).empty() && !is_said("UCX_SOCKADDR_TLS_PRIORITY"))
    result.push_back({"SOCKADDR_TLS_PRIORITY", "rdmacm"});
  return result;
}

}  // namespace weft::ucx
