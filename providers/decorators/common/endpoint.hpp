// An endpoint that forwards everything, calls and events, to the one it wraps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/provider/endpoint.hpp"

namespace weft::decorator {

class Endpoint : public provider::Endpoint, public provider::EndpointEvents {
 public:
  explicit Endpoint(const provider::EndpointRequest& request) : events_(*request.events), id_(request.id) {}

  // Follows the constructor at once: the wrapped endpoint is made with this one as its events.
  void wrap(std::unique_ptr<provider::Endpoint> inner) { inner_ = std::move(inner); }
  [[nodiscard]] provider::Endpoint& inner() const noexcept { return *inner_; }
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }

  [[nodiscard]] std::vector<std::byte> blob(const provider::PathAddresses& path) override {
    return inner_->blob(path);
  }
  [[nodiscard]] Limits limits() const noexcept override { return inner_->limits(); }
  bool establish(const provider::PeerParameters& peer) override { return inner_->establish(peer); }
  void go_up() noexcept override { inner_->go_up(); }
  bool withdraw_connect_report() noexcept override { return inner_->withdraw_connect_report(); }
  PostResult post(const WorkRequest* requests, std::size_t count) noexcept override {
    return inner_->post(requests, count);
  }
  PostResult post_receives(const ReceiveRequest* requests, std::size_t count) noexcept override {
    return inner_->post_receives(requests, count);
  }
  [[nodiscard]] Imported import_key(std::span<const std::byte> key) override {
    return inner_->import_key(key);
  }
  void release_key(std::uint64_t token) noexcept override { inner_->release_key(token); }
  void drain() noexcept override { inner_->drain(); }
  void end(const provider::EndOrder& order) noexcept override { inner_->end(order); }
  void rung() noexcept override { inner_->rung(); }
  void silence() noexcept override { inner_->silence(); }

  // Called by the wrapped endpoint, its locks held.
  void failed(Status cause, std::uint64_t detail, std::int32_t native_code,
              std::string_view text) noexcept override {
    events_.failed(cause, detail, native_code, text);
  }
  void established() noexcept override { events_.established(); }
  void ring_peer() noexcept override { events_.ring_peer(); }
  void drained(std::uint64_t messages_sent) noexcept override { events_.drained(messages_sent); }
  void finished() noexcept override { events_.finished(); }

 protected:
  [[nodiscard]] provider::EndpointEvents& events() noexcept { return events_; }

 private:
  provider::EndpointEvents& events_;
  const std::uint32_t id_;
  std::unique_ptr<provider::Endpoint> inner_;
};

}  // namespace weft::decorator
