// What the server does for one client.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <weft/weft.hpp>

#include "options.hpp"
#include "site.hpp"

namespace perf::remote {

/// Arrivals at a listener, one by one.
class Arrivals {
 public:
  Arrivals(weft::Context& context, const std::string& address);

  [[nodiscard]] std::string address() const { return listener_.address(); }
  [[nodiscard]] std::uint16_t port() const { return listener_.port(); }
  /// The next, or nothing within that time; a negative time waits for ever.
  [[nodiscard]] std::optional<weft::ConnectionRequest> next(std::chrono::milliseconds time);

 private:
  weft::CompletionQueue queue_;
  weft::Listener listener_;
};

class ServerSession {
 public:
  /// Opens what the client wants in a context of its own and accepts it.
  ServerSession(const ServerOptions& options, weft::Context& context, const Hello& hello,
                weft::ConnectionRequest request);

  /// Serves rows until the client leaves. Throws std::exception when a row or the client broke off.
  void run();

 private:
  [[nodiscard]] bool client_left();
  /// A row that is asked for, or nothing when it was refused with a reason.
  void take_request(weft::ConnectionRequest request);
  void serve_row(const Row& row, std::span<const std::byte> client_key, weft::ConnectionRequest& request);
  void take_lanes(Site& site);
  [[nodiscard]] bool is_ours(const Json& word) const;

  const ServerOptions& options_;
  weft::Context context_;
  Arrivals arrivals_;
  std::string token_;
  weft::CompletionQueue queue_;
  weft::Endpoint client_;
};

void refuse(weft::ConnectionRequest& request, const std::string& reason);

}  // namespace perf::remote
