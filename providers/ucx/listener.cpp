#include "listener.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "handles.hpp"

namespace weft::ucx {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_visitors = 256;
constexpr auto patience = 10s;

}  // namespace

void MeetingPlace::encode(std::span<std::byte, size> bytes) const noexcept {
  std::memcpy(bytes.data(), &number, sizeof number);
  std::memcpy(bytes.data() + sizeof number, &port, sizeof port);
}

std::optional<MeetingPlace> MeetingPlace::decode(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() != size) return std::nullopt;
  MeetingPlace place;
  std::memcpy(&place.number, bytes.data(), sizeof place.number);
  std::memcpy(&place.port, bytes.data() + sizeof place.number, sizeof place.port);
  if (place.number == 0 || place.port == 0) return std::nullopt;
  return place;
}

void rehearse(const Library& library) {
  const WorkerHandle worker(make_worker(library.context.get()));
  if (library.lanes->wire_up == WireUp::listener)
    static_cast<void>(Listener(worker.get(), library.rdma.address).port());
}

Listener::Listener(ucp_worker_h worker, const sockaddr_in6& address) {
  visitors_.reserve(most_visitors);
  const PlainAddress at = plain(address);
  ucp_listener_params_t parameters{};
  parameters.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  parameters.sockaddr.addr = reinterpret_cast<const sockaddr*>(&at.storage);
  parameters.sockaddr.addrlen = at.length;
  parameters.conn_handler.cb = &on_visitor;
  parameters.conn_handler.arg = this;
  if (const ucs_status_t code = ucp_listener_create(worker, &parameters, &listener_); code != UCS_OK)
    refuse(("listening through rdma_cm at " + ip_text(address) + " (ucp_listener_create)").c_str(), code);
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  if (const ucs_status_t code = ucp_listener_query(listener_, &attributes); code != UCS_OK) {
    ucp_listener_destroy(listener_);
    refuse("ucp_listener_query", code);
  }
  port_ = mapped({reinterpret_cast<const std::byte*>(&attributes.sockaddr), sizeof attributes.sockaddr})
              .sin6_port;
}

Listener::~Listener() {
  for (const Visitor& visitor : visitors_) static_cast<void>(ucp_listener_reject(listener_, visitor.request));
  ucp_listener_destroy(listener_);
}

void Listener::on_visitor(ucp_conn_request_h request, void* listener) noexcept {
  auto& self = *static_cast<Listener*>(listener);
  ucp_conn_request_attr_t attributes{};
  attributes.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID;
  self.drop_late_visitors();
  if (ucp_conn_request_query(request, &attributes) != UCS_OK || self.visitors_.size() == most_visitors) {
    static_cast<void>(ucp_listener_reject(self.listener_, request));
    return;
  }
  self.visitors_.push_back({request, attributes.client_id, std::chrono::steady_clock::now()});
  self.news_ = true;
}

ucp_conn_request_h Listener::take(std::uint64_t number) noexcept {
  const auto found = std::find_if(visitors_.begin(), visitors_.end(),
                                  [number](const Visitor& visitor) { return visitor.number == number; });
  if (found == visitors_.end()) return nullptr;
  const ucp_conn_request_h request = found->request;
  visitors_.erase(found);
  return request;
}

void Listener::keep(ucp_conn_request_h request, std::uint64_t number) noexcept {
  visitors_.push_back({request, number, std::chrono::steady_clock::now()});
}

void Listener::drop_late_visitors() noexcept {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(visitors_, [&](const Visitor& visitor) {
    if (now - visitor.came < patience) return false;
    static_cast<void>(ucp_listener_reject(listener_, visitor.request));
    return true;
  });
}

bool Listener::look_after_visitors() noexcept {
  drop_late_visitors();
  return std::exchange(news_, false);
}

}  // namespace weft::ucx
