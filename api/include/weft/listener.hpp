// Accepting connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "weft/completion_queue.hpp"
#include "weft/endpoint.hpp"
#include "weft/export.hpp"

namespace weft {

namespace core {
class ListenerHandle;
class RequestHandle;
}  // namespace core

struct ListenOptions {
  CompletionQueue queue{};       // a `connection_request` report comes here for each arrival; required
  std::uint64_t user_value = 0;  // returned in the reports
  std::uint32_t backlog =
      1024;  // arrivals waiting for next(), 1 to 65,536; further ones are refused explicitly
};

// A peer that wants to connect. A handle; destroying the last copy of an unanswered request rejects it. It is
// answered once; a second answer throws Error(invalid_argument).
class WEFT_API ConnectionRequest {
 public:
  ConnectionRequest() noexcept = default;

  [[nodiscard]] std::string peer_address() const;                 // "host:port", numeric
  [[nodiscard]] std::span<const std::byte> private_data() const;  // as given to connect (CON-4)

  // Makes the endpoint and starts to accept. Receives can be posted to it at once, before it is up: a message
  // the peer sends as soon as it is connected is never lost (CON-5); to be sure that they are there first,
  // call prepare(), post, then accept(). Throws Error: private data too long, resource_limit, cancelled when
  // the peer is gone.
  Endpoint accept(const EndpointOptions& options);
  // Makes the endpoint without answering yet; accept() with no options then answers.
  Endpoint prepare(const EndpointOptions& options);
  void accept();
  // Tells the peer no, with private data for it (CON-4).
  void reject(std::span<const std::byte> private_data = {});

  [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  friend struct core::Opener;
  explicit ConnectionRequest(std::shared_ptr<core::RequestHandle> handle) noexcept
      : handle_(std::move(handle)) {}

  std::shared_ptr<core::RequestHandle> handle_;
};

// A handle; destroying the last copy stops listening and rejects what was not taken. Thread rules: as the
// context's.
class WEFT_API Listener {
 public:
  Listener() noexcept = default;

  // The oldest arrival not yet taken, or nothing. Never blocks. One `connection_request` report stands for
  // one arrival.
  [[nodiscard]] std::optional<ConnectionRequest> next();

  // The address bound, with the real port when 0 was asked for: "127.0.0.1:40123", "[::]:7471" (CON-1).
  [[nodiscard]] std::string address() const;
  [[nodiscard]] std::uint16_t port() const;

  // Stops listening. Endpoints accepted before live on.
  void close();

  [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  friend class Context;
  explicit Listener(std::shared_ptr<core::ListenerHandle> handle) noexcept : handle_(std::move(handle)) {}

  std::shared_ptr<core::ListenerHandle> handle_;
};

}  // namespace weft
