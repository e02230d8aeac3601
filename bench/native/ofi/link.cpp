#include "link.hpp"

#include <rdma/fi_errno.h>

#include <array>
#include <cstring>
#include <stdexcept>

namespace perf::ofi {
namespace {

constexpr std::size_t most_pending = 8192;
constexpr std::size_t small_queue = 64;

std::unique_ptr<fi_info, FreeInfo> describe(const Fabric& fabric) {
  const std::unique_ptr<fi_info, FreeInfo> hints(fi_allocinfo());
  if (hints == nullptr) throw std::bad_alloc();
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  if (fabric.small_queues) hints->tx_attr->size = hints->rx_attr->size = small_queue;
  hints->fabric_attr->prov_name = ::strdup(fabric.provider);
  fi_info* found = nullptr;
  const std::uint64_t flags = fabric.node != nullptr ? FI_SOURCE : 0;
  const int code = fi_getinfo(FI_VERSION(1, 14), fabric.node, nullptr, flags, hints.get(), &found);
  if (code != 0) throw_libfabric_error("fi_getinfo", code);
  const std::unique_ptr<fi_info, FreeInfo> all(found);
  for (const fi_info* at = found; at != nullptr; at = at->next) {
    const bool wanted = std::strcmp(at->fabric_attr->prov_name, fabric.provider) == 0;
    if (!wanted || (at->addr_format == FI_SOCKADDR_IN6)) continue;
    std::unique_ptr<fi_info, FreeInfo> chosen(fi_dupinfo(at));
    chosen->domain_attr->threading = FI_THREAD_DOMAIN;
    return chosen;
  }
  throw std::runtime_error(std::string("bare libfabric: it offers no ") + fabric.provider + " here");
}

template <class Object>
Handle<Object> take(const char* call, int code, Object* object) {
  if (code != 0) throw_libfabric_error(call, code);
  return Handle<Object>(object);
}

}  // namespace

void throw_libfabric_error(const char* call, std::int64_t code) {
  throw std::runtime_error(std::string("bare libfabric: ") + call + ": " +
                           fi_strerror(static_cast<int>(code < 0 ? -code : code)));
}

Link::Link(const Fabric& fabric) : info_(describe(fabric)), pending_(most_pending) {
  fid_fabric* opened = nullptr;
  int code = fi_fabric(info_->fabric_attr, &opened, nullptr);
  fabric_ = take("fi_fabric", code, opened);
  fid_domain* domain = nullptr;
  code = fi_domain(opened, info_.get(), &domain, nullptr);
  domain_ = take("fi_domain", code, domain);
  fi_cq_attr queue{};
  queue.format = FI_CQ_FORMAT_MSG;
  fid_cq* completions = nullptr;
  code = fi_cq_open(domain, &queue, &completions, nullptr);
  completions_ = take("fi_cq_open", code, completions);
  fi_av_attr vector{};
  vector.type = FI_AV_TABLE;
  fid_av* addresses = nullptr;
  code = fi_av_open(domain, &vector, &addresses, nullptr);
  addresses_ = take("fi_av_open", code, addresses);
  fid_ep* endpoint = nullptr;
  code = fi_endpoint(domain, info_.get(), &endpoint, nullptr);
  endpoint_ = take("fi_endpoint", code, endpoint);
  if (code = fi_ep_bind(endpoint, &completions->fid, FI_TRANSMIT | FI_RECV); code != 0)
    throw_libfabric_error("fi_ep_bind", code);
  if (code = fi_ep_bind(endpoint, &addresses->fid, 0); code != 0) throw_libfabric_error("fi_ep_bind", code);
  if (code = fi_enable(endpoint); code != 0) throw_libfabric_error("fi_enable", code);
}

std::vector<std::byte> Link::address() const {
  std::size_t length = 256;
  std::vector<std::byte> bytes(length);
  if (const int code = fi_getname(&endpoint_->fid, bytes.data(), &length); code != 0)
    throw_libfabric_error("fi_getname", code);
  bytes.resize(length);
  return bytes;
}

void Link::connect(std::span<const std::byte> address) {
  const int added = fi_av_insert(addresses_.get(), address.data(), 1, &peer_, 0, nullptr);
  if (added != 1) throw_libfabric_error("fi_av_insert", added);
}

Link::Pending& Link::next(bool receives, std::uint64_t number) {
  Pending& pending = pending_[next_pending_++ % pending_.size()];
  pending.receives = receives;
  pending.number = number;
  return pending;
}

template <class Call>
void Link::start(const char* name, const Call& call) {
  for (;;) {
    const std::int64_t code = call();
    if (code == 0) return;
    if (code != -FI_EAGAIN) throw_libfabric_error(name, code);
    progress();
  }
}

void Link::send(const void* bytes, std::size_t length, const Memory& memory) {
  if (length <= info_->tx_attr->inject_size) {
    start("fi_inject", [&] { return fi_inject(endpoint_.get(), bytes, length, peer_); });
    return;
  }
  Pending& pending = next(false, 0);
  start("fi_send", [&] {
    return fi_send(endpoint_.get(), bytes, length, memory.description(), peer_, &pending.context);
  });
  ++outstanding_;
}

// Complete when it is in the peer's memory.
void Link::write(const void* bytes, std::size_t length, const Memory& memory, std::uint64_t to,
                 std::uint64_t key) {
  Pending& pending = next(false, 0);
  iovec from{const_cast<void*>(bytes), length};
  fi_rma_iov there{to, length, key};
  void* description = memory.description();
  fi_msg_rma message{};
  message.msg_iov = &from;
  message.desc = &description;
  message.iov_count = 1;
  message.addr = peer_;
  message.rma_iov = &there;
  message.rma_iov_count = 1;
  message.context = &pending.context;
  start("fi_writemsg",
        [&] { return fi_writemsg(endpoint_.get(), &message, FI_DELIVERY_COMPLETE | FI_COMPLETION); });
  ++outstanding_;
}

void Link::read(void* bytes, std::size_t length, const Memory& memory, std::uint64_t from,
                std::uint64_t key) {
  Pending& pending = next(false, 0);
  start("fi_read", [&] {
    return fi_read(endpoint_.get(), bytes, length, memory.description(), peer_, from, key, &pending.context);
  });
  ++outstanding_;
}

void Link::receive(void* bytes, std::size_t length, const Memory& memory, std::uint64_t number) {
  Pending& pending = next(true, number);
  start("fi_recv", [&] {
    return fi_recv(endpoint_.get(), bytes, length, memory.description(), FI_ADDR_UNSPEC, &pending.context);
  });
}

void Link::progress() {
  std::array<fi_cq_msg_entry, 16> entries;
  const ssize_t count = fi_cq_read(completions_.get(), entries.data(), entries.size());
  if (count == -FI_EAGAIN) return;
  if (count == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    static_cast<void>(fi_cq_readerr(completions_.get(), &error, 0));
    throw_libfabric_error("a completion", error.err);
  }
  if (count < 0) throw_libfabric_error("fi_cq_read", count);
  for (ssize_t i = 0; i < count; ++i) {
    const fi_cq_msg_entry& entry = entries[static_cast<std::size_t>(i)];
    auto* const pending = static_cast<Pending*>(entry.op_context);
    if (pending == nullptr) continue;
    if (pending->receives) {
      on_received(pending->number, entry.len);
    } else {
      --outstanding_;
    }
  }
}

Memory::Memory(const Link& link, std::span<std::byte> bytes) {
  static std::uint64_t next_key = 1;
  fid_mr* handle = nullptr;
  const std::uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  const int code =
      fi_mr_reg(link.domain(), bytes.data(), bytes.size(), access, 0, next_key++, 0, &handle, nullptr);
  if (code != 0) throw_libfabric_error("fi_mr_reg", code);
  handle_.reset(handle);
  if ((link.registration_mode() & FI_MR_LOCAL) != 0) description_ = fi_mr_desc(handle);
  if ((link.registration_mode() & FI_MR_VIRT_ADDR) != 0)
    base_ = reinterpret_cast<std::uintptr_t>(bytes.data());
}

std::vector<std::byte> Memory::key() const {
  const RemoteMemory memory{base_, fi_mr_key(handle_.get())};
  std::vector<std::byte> bytes(sizeof memory);
  std::memcpy(bytes.data(), &memory, sizeof memory);
  return bytes;
}

RemoteMemory RemoteMemory::from(std::span<const std::byte> bytes) {
  RemoteMemory memory;
  if (bytes.size() < sizeof memory) throw std::runtime_error("bare libfabric: the peer told no key");
  std::memcpy(&memory, bytes.data(), sizeof memory);
  return memory;
}

}  // namespace perf::ofi
