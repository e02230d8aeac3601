// Sketch: an endpoint on UCP (see ucx_sketch.hpp). Included once, by ucx_sketch.cpp.
#pragma once

#include "ucx_sketch.hpp"

namespace weft::sketch::ucx {

[[noreturn]] inline void refuse(const char* call, ucs_status_t code) {
  throw Error(
      code == UCS_ERR_NO_MEMORY || code == UCS_ERR_NO_RESOURCE ? Status::resource_limit : Status::unavailable,
      std::string(call) + ": " + ucs_status_string(code));
}

inline void close_by_force(ucp_ep_h endpoint) noexcept {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_EP_CLOSE_FLAG_FORCE;
  if (ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint, &parameters); UCS_PTR_IS_PTR(request))
    ucp_request_free(request);  // it goes on by itself
}

inline Endpoint::Endpoint(Context& owner, const provider::EndpointRequest& request)
    : engine::Endpoint(request, static_cast<CompletionQueue*>(request.send_queue)->entries,
                       static_cast<CompletionQueue*>(request.receive_queue)->entries),
      owner_(owner),
      home_(*static_cast<CompletionQueue*>(request.receive_queue)),
      slots_(frames_per_endpoint) {
  owner.host.random_bytes(std::as_writable_bytes(std::span{&cookie_, 1}));
  for (Slot& slot : slots_) slot.endpoint = this;
  const std::lock_guard guard(owner.lock);
  home_.by_cookie.emplace(cookie_, this);
  if (auto* other = static_cast<CompletionQueue*>(request.send_queue); other != &home_)
    other->driven.push_back(&home_);
}

inline Endpoint::~Endpoint() {
  const std::lock_guard guard(owner_.lock);
  home_.by_cookie.erase(cookie_);
  if (auto* other = static_cast<CompletionQueue*>(request_.send_queue); other != &home_)
    if (const auto found = std::ranges::find(other->driven, &home_); found != other->driven.end())
      other->driven.erase(found);  // one of them: other endpoints may stand there too
  if (endpoint_ != nullptr && !owner_.in_child) close_by_force(endpoint_);
}

inline std::vector<std::byte> Endpoint::blob(const provider::PathAddresses& path) {
  const std::lock_guard guard(owner_.lock);
  std::vector<std::byte> out;
  const auto append = [&](const void* bytes, std::size_t count) {
    const auto* from = static_cast<const std::byte*>(bytes);
    out.insert(out.end(), from, from + count);
  };
  append(&cookie_, sizeof cookie_);
  std::uint64_t length = path.local.size();
  if (owner_.lanes.by_listener) {  // the address the peer reached, the port of UCX's own listener
    sockaddr_storage address{};
    std::memcpy(&address, path.local.data(), std::min(path.local.size(), sizeof address));
    reinterpret_cast<sockaddr_in*>(&address)->sin_port = 0;
    home_.listen(reinterpret_cast<const sockaddr*>(&address), path.local.size());
    reinterpret_cast<sockaddr_in*>(&address)->sin_port = home_.listening_port();
    append(&length, sizeof length);
    append(&address, path.local.size());
  } else {
    ucp_address_t* address = nullptr;
    std::size_t size = 0;
    if (const ucs_status_t code = ucp_worker_get_address(home_.worker, &address, &size); code != UCS_OK)
      refuse("ucp_worker_get_address", code);
    length = size;
    append(&length, sizeof length);
    append(address, size);
    ucp_worker_release_address(home_.worker, address);
  }
  const std::vector<std::byte> own = engine_blob();
  append(own.data(), own.size());
  return out;
}

inline bool Endpoint::establish(const provider::PeerParameters& peer) {
  const std::lock_guard guard(owner_.lock);
  std::uint64_t length = 0;
  if (peer.blob.size() >= 16) std::memcpy(&length, peer.blob.data() + 8, 8);
  if (peer.blob.size() < 16 || length > peer.blob.size() - 16 || length == 0)
    throw Error(Status::protocol, "the peer's blob does not hold a UCX address");
  std::memcpy(&peer_cookie_, peer.blob.data(), 8);
  accept_engine_blob(peer.blob.subspan(16 + length), peer);
  initiator_ = peer.initiator;
  established_called_ = true;
  const std::byte* address = peer.blob.data() + 16;
  sockaddr_storage socket_address{};
  ucp_ep_params_t parameters{};
  if (!owner_.lanes.by_listener) {
    // UCX parses this itself and trusts it: `connected_peers` at the least (SEC-3).
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    parameters.address = reinterpret_cast<const ucp_address_t*>(address);
    connect(parameters);
  } else if (initiator_) {
    std::memcpy(&socket_address, address, std::min<std::size_t>(length, sizeof socket_address));
    parameters.field_mask = UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS;
    parameters.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    parameters.sockaddr = {reinterpret_cast<const sockaddr*>(&socket_address),
                           static_cast<socklen_t>(length)};
    connect(parameters);
  }
  // The acceptor behind a listener waits for the initiator's first frame: claim().
  if (endpoint_ != nullptr && !ready_) prove_path();
  return ready_;
}

inline void Endpoint::connect(ucp_ep_params_t parameters) {
  parameters.field_mask |=
      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_USER_DATA;
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.user_data = this;
  parameters.err_handler.arg = this;
  parameters.err_handler.cb = [](void* self, ucp_ep_h, ucs_status_t status) {
    auto& endpoint = *static_cast<Endpoint*>(self);
    if (!endpoint.closing_)
      endpoint.path_broken(status, ucs_status_string(status));  // the core asks why (ERR-2)
  };
  if (const ucs_status_t code = ucp_ep_create(home_.worker, &parameters, &endpoint_); code != UCS_OK)
    throw Error(Status::unreachable, std::string("ucp_ep_create: ") + ucs_status_string(code));
}

// True: in UCX's hands, its callback follows. A request can also be done, or refused, inside the call.
inline bool Endpoint::started(ucs_status_ptr_t request, const char* call) noexcept {
  if (UCS_PTR_IS_ERR(request)) path_broken(UCS_PTR_STATUS(request), call);
  if (UCS_PTR_IS_PTR(request)) ++outside_;
  return UCS_PTR_IS_PTR(request);
}

// An empty frame that makes UCX wire up, and a flush that ends when the peer's side has it: `up` means up.
inline void Endpoint::prove_path() noexcept {
  Slot& slot = slots_.front();
  slot.header = {peer_cookie_, sent_++};
  slot.busy = true;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY;
  parameters.user_data = &slot;
  parameters.cb.send = [](void* request, ucs_status_t, void* user) {
    auto& sent = *static_cast<Slot*>(user);
    sent.busy = false;
    --sent.endpoint->outside_;
    ucp_request_free(request);
  };
  slot.busy = started(
      ucp_am_send_nbx(endpoint_, frame_message, &slot.header, sizeof slot.header, nullptr, 0, &parameters),
      "ucp_am_send_nbx");
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.user_data = this;
  parameters.cb.send = [](void* request, ucs_status_t status, void* user) {
    auto& self = *static_cast<Endpoint*>(user);
    --self.outside_;
    if (status == UCS_OK && !std::exchange(self.ready_, true)) self.request_.events->established();
    ucp_request_free(request);
  };
  if (!started(ucp_ep_flush_nbx(endpoint_, &parameters), "ucp_ep_flush_nbx")) ready_ = true;
}

inline void Endpoint::claim(ucp_ep_h endpoint) noexcept {
  if (endpoint_ != nullptr) return close_by_force(endpoint);  // a second one is not for us
  endpoint_ = endpoint;  // its error handler: set at creation, by a table from ucp_ep_h
  if (!std::exchange(ready_, true) && established_called_) request_.events->established();
}

inline std::ptrdiff_t Endpoint::transmit(const iovec* pieces, int count) noexcept {
  const auto slot = std::ranges::find_if(slots_, [](const Slot& one) { return !one.busy; });
  if (!ready_ || closing_ || slot == slots_.end()) return 0;
  std::size_t used = 0;
  for (int i = 0; i < count && used < frame_size; ++i) {
    const std::size_t part = std::min(pieces[i].iov_len, frame_size - used);
    std::memcpy(slot->bytes.data() + used, pieces[i].iov_base, part);
    used += part;
  }
  slot->header = {peer_cookie_, sent_++};
  ++owner_.frames;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_AM_SEND_FLAG_EAGER;
  parameters.user_data = &*slot;
  parameters.cb.send = [](void* request, ucs_status_t status, void* user) {
    auto& sent = *static_cast<Slot*>(user);
    sent.busy = false;
    --sent.endpoint->outside_;
    if (status == UCS_OK && !sent.endpoint->closing_) sent.endpoint->room();
    ucp_request_free(request);
  };
  slot->busy = started(ucp_am_send_nbx(endpoint_, frame_message, &slot->header, sizeof slot->header,
                                       slot->bytes.data(), used, &parameters),
                       "ucp_am_send_nbx");
  return static_cast<std::ptrdiff_t>(used);
}

// ORD-1: UCX may hand frames over out of order. The engine sees a stream; a gap larger than agreed is a
// broken peer.
inline ucs_status_t Endpoint::frame(std::uint64_t number, std::span<const std::byte> bytes) noexcept {
  if (closing_) return UCS_OK;
  if (number - expected_ >= reorder_depth) {
    path_broken(UCS_ERR_INVALID_PARAM, "a frame outside of the window");
    return UCS_OK;
  }
  if (number != expected_) {
    held_[number % reorder_depth] = {number, {bytes.begin(), bytes.end()}};
    return UCS_OK;
  }
  arrived(bytes);
  for (Held* next = &held_[++expected_ % reorder_depth]; next->number == expected_;
       next = &held_[++expected_ % reorder_depth]) {
    arrived(next->bytes);
    next->number = ~0ull;
  }
  return UCS_OK;
}

// Rendezvous: the target, having matched or checked, asks; the source answers out of the announced memory;
// UCX moves it in one copy where the lane can.
inline bool Endpoint::pull(const engine::Pull& pull) noexcept {
  const auto slot = std::ranges::find_if(slots_, [](const Slot& one) { return !one.busy; });
  if (slot == slots_.end() || closing_) return false;
  pulls_[pull.id] = pull;
  slot->header = {peer_cookie_, pull.id};
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.user_data = &*slot;
  parameters.cb.send = [](void* request, ucs_status_t, void* user) {
    static_cast<Slot*>(user)->busy = false;
    --static_cast<Slot*>(user)->endpoint->outside_;
    ucp_request_free(request);
  };
  slot->busy = started(
      ucp_am_send_nbx(endpoint_, want_message, &slot->header, sizeof slot->header, nullptr, 0, &parameters),
      "ucp_am_send_nbx");
  return true;
}

inline void Endpoint::wanted(std::uint64_t number) noexcept {
  const std::span<const std::byte> bytes = announced(number);
  if (bytes.empty() || closing_) return;
  struct Answer {
    Header header;
    Endpoint* endpoint;
  };
  auto* answer =
      new (std::nothrow) Answer{{peer_cookie_, number}, this};  // a real provider: the operation's record
  if (answer == nullptr) return path_broken(UCS_ERR_NO_MEMORY, "no memory for an answer");
  ucp_request_param_t parameters{};
  parameters.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  parameters.flags = UCP_AM_SEND_FLAG_RNDV;
  parameters.user_data = answer;
  parameters.cb.send = [](void* request, ucs_status_t status, void* user) {
    const std::unique_ptr<Answer> done(static_cast<Answer*>(user));
    --done->endpoint->outside_;
    done->endpoint->sent_payload(done->header.number, status == UCS_OK ? Status::ok : Status::peer_lost,
                                 status);
    ucp_request_free(request);
  };
  if (started(ucp_am_send_nbx(endpoint_, payload_message, &answer->header, sizeof answer->header,
                              bytes.data(), bytes.size(), &parameters),
              "ucp_am_send_nbx"))
    return;
  delete answer;
  sent_payload(number, Status::ok, 0);
}

inline ucs_status_t Endpoint::payload(std::uint64_t number, void* data, std::size_t length,
                                      bool deferred) noexcept {
  const auto found = pulls_.find(number);
  if (closing_ || found == pulls_.end() || found->second.length != length) {
    if (!closing_) path_broken(UCS_ERR_INVALID_PARAM, "a payload nobody asked for");
    return deferred ? UCS_ERR_INVALID_PARAM : UCS_OK;
  }
  const engine::Pull what = found->second;
  pulls_.erase(found);
  if (!deferred) {
    std::memcpy(what.to, data, length);
    pulled(what.id, Status::ok, 0);
    return UCS_OK;
  }
  struct Landing {
    std::uint64_t id;
    Endpoint* endpoint;
  };
  auto* landing = new (std::nothrow) Landing{what.id, this};
  if (landing == nullptr) return UCS_ERR_NO_MEMORY;
  ucp_request_param_t parameters{};
  parameters.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  parameters.user_data = landing;
  parameters.cb.recv_am = [](void* request, ucs_status_t status, size_t, void* user) {
    const std::unique_ptr<Landing> done(static_cast<Landing*>(user));
    --done->endpoint->outside_;
    done->endpoint->pulled(done->id, status == UCS_OK ? Status::ok : Status::peer_lost, status);
    ucp_request_free(request);
  };
  if (!started(ucp_am_recv_data_nbx(home_.worker, data, what.to, length, &parameters),
               "ucp_am_recv_data_nbx"))
    delete landing;
  return UCS_INPROGRESS;
}

inline void Endpoint::tend() noexcept {
  if (ready_ && !closing_) room();
  if (closing_ && endpoint_ == nullptr && outside_ == 0) detached();
}

// ERR-5: the close by force completes all requests with an error, a running rendezvous into the program's
// memory too (tried on tcp and shared memory, 1.13); only when the last has come back does nothing touch that
// memory any more. tend() sees to it, from polls of others or from service().
inline void Endpoint::detach() noexcept {
  closing_ = true;
  pulls_.clear();
  if (endpoint_ != nullptr) close_by_force(std::exchange(endpoint_, nullptr));
  if (owner_.events != nullptr) owner_.events->request_service();
}

}  // namespace weft::sketch::ucx
