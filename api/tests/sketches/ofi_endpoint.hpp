// Sketch: an endpoint on libfabric (see ofi_sketch.hpp). Included once, by ofi_sketch.cpp.
#pragma once

#include "ofi_sketch.hpp"

namespace weft::sketch::ofi {

// The low bits of a tag say what a frame is; the rest is the receiver's cookie.
inline constexpr std::uint64_t control_mask = 3, stream = 0, hello = 1, asleep = 2;

[[noreturn]] inline void refuse(const char* call, long code) {
  const bool limit = code == -FI_ENOMEM || code == -FI_EMFILE || code == -FI_ENOSPC;
  throw Error(limit ? Status::resource_limit : Status::system_error,
              std::string(call) + ": " + fi_strerror(static_cast<int>(-code)));
}

template <class Object, class Open>
Handle<Object> opened(const char* call, Open open) {
  Object* object = nullptr;
  if (const int code = open(&object); code != 0) refuse(call, code);
  return Handle<Object>{object};
}

inline Endpoint::Endpoint(Context& owner, const provider::EndpointRequest& request)
    : engine::Endpoint(request, static_cast<CompletionQueue*>(request.send_queue)->entries(),
                       static_cast<CompletionQueue*>(request.receive_queue)->entries()),
      owner_(owner),
      send_queue_(*static_cast<CompletionQueue*>(request.send_queue)),
      receive_queue_(*static_cast<CompletionQueue*>(request.receive_queue)),
      frames_(2 * frames_per_endpoint * frame_size),
      slots_(2 * frames_per_endpoint + 4) {
  const std::lock_guard guard(owner.lock);
  owner.host.random_bytes(std::as_writable_bytes(std::span{&cookie_, 1}));
  cookie_ &= ~control_mask;
  endpoint_ = opened<fid_ep>("fi_endpoint", [&](fid_ep** out) {
    return fi_endpoint(owner.domain.get(), owner.info.get(), out, nullptr);
  });
  // Either queue drives it (PRG-1): what arrives shows at one, what left at the other.
  int code = fi_ep_bind(endpoint_.get(), &owner.addresses->fid, 0);
  if (code == 0) code = fi_ep_bind(endpoint_.get(), &send_queue_.native()->fid, FI_TRANSMIT);
  if (code == 0) code = fi_ep_bind(endpoint_.get(), &receive_queue_.native()->fid, FI_RECV);
  if (code == 0) code = fi_enable(endpoint_.get());
  if (code != 0) refuse("fi_ep_bind or fi_enable", code);
  if ((owner.info->domain_attr->mr_mode & FI_MR_LOCAL) != 0)
    frame_registration_ = opened<fid_mr>("fi_mr_reg", [&](fid_mr** out) {
      return fi_mr_reg(owner.domain.get(), frames_.data(), frames_.size(), FI_SEND | FI_RECV, 0, request.id,
                       0, out, nullptr);
    });
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    slot.endpoint = this;
    slot.kind = i < frames_per_endpoint       ? Slot::Kind::receive
                : i < 2 * frames_per_endpoint ? Slot::Kind::send
                                              : Slot::Kind::pull;
    if (slot.kind != Slot::Kind::pull) slot.frame = frames_.data() + i * frame_size;
    if (slot.kind == Slot::Kind::receive)
      post_receive(slot);  // before the peer knows of us: nothing is lost (CON-5)
  }
  send_queue_.attach(this);
  if (&receive_queue_ != &send_queue_) receive_queue_.attach(this);
}

inline Endpoint::~Endpoint() {
  const std::lock_guard guard(owner_.lock);
  send_queue_.detach(this);
  receive_queue_.detach(this);
  if (owner_.in_child)
    static_cast<void>(endpoint_.release()), static_cast<void>(frame_registration_.release());
}

inline std::vector<std::byte> Endpoint::blob(const provider::PathAddresses& path) {
  std::array<std::byte, 256> name{};
  std::size_t length = name.size();
  if (const int code = fi_getname(&endpoint_->fid, name.data(), &length); code != 0)
    refuse("fi_getname", code);
  // A wildcard, or an interface the peer has no way to, never leaves (CON-1): the address is that of the
  // core's connection, the port is ours. A scope id means nothing elsewhere: the peer puts its own.
  if (owner_.fabric.has_socket_addresses && path.local.size() <= length) {
    const auto family = reinterpret_cast<const sockaddr*>(path.local.data())->sa_family;
    const in_port_t port =
        reinterpret_cast<const sockaddr_in*>(name.data())->sin_port;  // same place in both families
    if (family != reinterpret_cast<const sockaddr*>(name.data())->sa_family)
      throw Error(Status::unreachable, "the fabric's address and the connection's are of different families");
    std::ranges::copy(path.local, name.begin());
    reinterpret_cast<sockaddr_in*>(name.data())->sin_port = port;
    if (family == AF_INET6) reinterpret_cast<sockaddr_in6*>(name.data())->sin6_scope_id = 0;
  }
  std::vector<std::byte> out;
  const auto append = [&](const void* bytes, std::size_t count) {
    const auto* from = static_cast<const std::byte*>(bytes);
    out.insert(out.end(), from, from + count);
  };
  const std::uint64_t name_length = length;
  append(&cookie_, sizeof cookie_);
  append(&name_length, sizeof name_length);
  append(name.data(), length);
  const std::vector<std::byte> own = engine_blob();
  append(own.data(), own.size());
  return out;
}

inline bool Endpoint::establish(const provider::PeerParameters& peer) {
  const std::lock_guard guard(owner_.lock);
  std::uint64_t length = 0;
  std::array<std::byte, 256> name{};
  if (peer.blob.size() >= 16) std::memcpy(&length, peer.blob.data() + 8, 8);
  if (peer.blob.size() < 16 || length > name.size() || length > peer.blob.size() - 16)
    throw Error(Status::protocol, "the peer's blob does not hold a libfabric address");
  std::memcpy(&peer_cookie_, peer.blob.data(), 8);
  std::memcpy(name.data(), peer.blob.data() + 16, length);
  if (auto* address = reinterpret_cast<sockaddr_in6*>(name.data());
      owner_.fabric.has_socket_addresses && address->sin6_family == AF_INET6)
    address->sin6_scope_id = reinterpret_cast<const sockaddr_in6*>(peer.path.peer.data())->sin6_scope_id;
  accept_engine_blob(peer.blob.subspan(16 + length), peer);
  if (fi_av_insert(owner_.addresses.get(), name.data(), 1, &peer_, 0, nullptr) != 1)
    throw Error(Status::unreachable, "fi_av_insert refused the peer's address");
  // rxm connects at the first message: the path is proved by one, so that `up` means what it says (CON-2).
  hello_due_ = true;
  tend();
  return false;
}

inline void Endpoint::rung() noexcept {
  const std::lock_guard guard(owner_.lock);
  receive_queue_.entries().wake();
  if (owner_.events != nullptr) owner_.events->request_service();
}

inline Slot* Endpoint::free_slot(Slot::Kind kind) noexcept {
  const auto found =
      std::ranges::find_if(slots_, [&](const Slot& one) { return one.kind == kind && !one.busy; });
  return found == slots_.end() ? nullptr : &*found;
}

inline void Endpoint::post_receive(Slot& slot) noexcept {
  void* description = frame_registration_ ? fi_mr_desc(frame_registration_.get()) : nullptr;
  // Any tag: what does not carry our cookie is taken and dropped, so that it does not pile up in the library.
  const ssize_t code =
      fi_trecv(endpoint_.get(), slot.frame, frame_size, description, FI_ADDR_UNSPEC, 0, ~0ull, &slot);
  slot.busy = code == 0;
  if (code != 0 && code != -FI_EAGAIN) path_broken(static_cast<std::int32_t>(code), "fi_trecv");
}

inline bool Endpoint::send(Slot& slot, std::size_t length, std::uint64_t control) noexcept {
  iovec piece{slot.frame, length};
  void* description = frame_registration_ ? fi_mr_desc(frame_registration_.get()) : nullptr;
  fi_msg_tagged message{};
  message.msg_iov = &piece;
  message.desc = &description;
  message.iov_count = 1;
  message.addr = peer_;
  message.tag = peer_cookie_ | control;
  message.context = &slot;
  // No inject: a failed one gives no completion. FI_COMPLETION, since the frame is reused on it.
  const ssize_t code = fi_tsendmsg(endpoint_.get(), &message, FI_COMPLETION);
  slot.busy = code == 0;
  if (code != 0 && code != -FI_EAGAIN)
    path_broken(static_cast<std::int32_t>(code), fi_strerror(static_cast<int>(-code)));
  if (code != 0) return false;
  ++owner_.frames;
  ++frames_sent_;
  if (std::exchange(peer_asleep_, false)) ++owner_.rings, request_.events->ring_peer();  // PRG-3
  return true;
}

// OPS-2 and coalescing: however many operations the engine framed, they leave in one message.
inline std::ptrdiff_t Endpoint::transmit(const iovec* pieces, int count) noexcept {
  Slot* slot = ready_ ? free_slot(Slot::Kind::send) : nullptr;
  if (slot == nullptr) return 0;
  std::size_t used = 0;
  for (int i = 0; i < count && used < frame_size; ++i) {
    const std::size_t part = std::min(pieces[i].iov_len, frame_size - used);
    std::memcpy(slot->frame + used, pieces[i].iov_base, part);
    used += part;
  }
  return send(*slot, used, stream) ? static_cast<std::ptrdiff_t>(used) : 0;
}

// The target fetches what it has matched or checked, straight into the program's memory (single copy on shm).
// Only because this fabric endpoint is this endpoint's alone may it be given that memory.
inline bool Endpoint::pull(const engine::Pull& pull) noexcept {
  Slot* slot = free_slot(Slot::Kind::pull);
  if (slot == nullptr) return false;
  iovec piece{pull.to, pull.length};
  void* description = fi_mr_desc(static_cast<Region*>(pull.into)->native());
  fi_rma_iov remote{pull.source_address, pull.length, pull.source_key};
  fi_msg_rma message{};
  message.msg_iov = &piece;
  message.desc = &description;
  message.iov_count = 1;
  message.addr = peer_;
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.context = slot;
  slot->pull_id = pull.id;
  slot->busy = fi_readmsg(endpoint_.get(), &message, FI_COMPLETION) == 0;
  return slot->busy;
}

inline void Endpoint::announce(engine::Region& region, std::uint64_t offset,
                               engine::Pull& description) noexcept {
  auto& own = static_cast<Region&>(region);
  description.source_key = fi_mr_key(own.native());
  description.source_address = own.remote_address(offset);
}

// How a completion is learned: the slot tells what it was, never the entry.
inline void Endpoint::finished(Slot& slot, std::size_t length, std::uint64_t tag, int error) noexcept {
  slot.busy = false;
  if (detached_) return;
  switch (slot.kind) {
    case Slot::Kind::pull:
      return pulled(slot.pull_id, error == 0 ? Status::ok : Status::peer_lost, error);
    case Slot::Kind::send:
      if (error != 0) return path_broken(error, fi_strerror(error));
      if (!std::exchange(ready_, true)) request_.events->established();  // the hello left: connected
      return room();
    case Slot::Kind::receive:
      if (error != 0) return path_broken(error, fi_strerror(error));
      if ((tag & ~control_mask) == cookie_) {
        ++frames_arrived_;
        if ((tag & control_mask) == asleep && length == sizeof(std::uint64_t)) {
          // What it had not seen when it lay down, it will not see: wake it at once.
          std::uint64_t seen = 0;
          std::memcpy(&seen, slot.frame, sizeof seen);
          if (seen != frames_sent_) request_.events->ring_peer();
          peer_asleep_ = seen == frames_sent_;
        }
        if ((tag & control_mask) == stream) arrived({slot.frame, length});
      }
      post_receive(slot);
  }
}

inline void Endpoint::tend() noexcept {
  if (detached_ || !endpoint_) return;
  if (hello_due_) {
    Slot* slot = free_slot(Slot::Kind::send);
    if (slot != nullptr && send(*slot, 0, hello)) {
      hello_due_ = false;
    } else if (!owner_.fabric.has_descriptor && owner_.events != nullptr) {
      // The fabric connects only while the peer makes progress too, and nothing of the fabric's wakes its
      // helper.
      request_.events->ring_peer();
      owner_.events->request_service();
    }
  }
  for (Slot& slot : slots_)
    if (slot.kind == Slot::Kind::receive && !slot.busy) post_receive(slot);
  if (ready_) room();
}

inline bool Endpoint::tell_asleep() noexcept {
  if (!ready_ || !moving()) return true;
  if (std::ranges::any_of(slots_, [](const Slot& one) { return one.kind == Slot::Kind::pull && one.busy; }))
    return false;  // nobody would ring for it
  Slot* slot = free_slot(Slot::Kind::send);
  if (slot == nullptr) return false;
  std::memcpy(slot->frame, &frames_arrived_, sizeof frames_arrived_);
  return send(*slot, sizeof frames_arrived_, asleep);
}

// Closing drops what is pending silently: our records complete it (CMP-1). Afterwards the fabric touches
// neither the frames nor the program's memory.
inline void Endpoint::detach() noexcept {
  detached_ = true;
  endpoint_.reset();
  if (peer_ != FI_ADDR_UNSPEC) static_cast<void>(fi_av_remove(owner_.addresses.get(), &peer_, 1, 0));
  detached();
}

}  // namespace weft::sketch::ofi
