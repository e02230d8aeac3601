#include "pull_port.hpp"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "weft/status.hpp"

namespace weft::ofi {

namespace {

[[nodiscard]] bool keeps(const fi_info& info, std::uint64_t mode) noexcept {
  return (static_cast<std::uint64_t>(info.domain_attr->mr_mode) & mode) != 0;
}

}  // namespace

PullPort::PullPort(const Device& device, std::uint64_t keys)
    : device_(device), keys_(keys), rdm_(device, device.info(keys), FI_CQ_FORMAT_MSG, device.fabric().waits) {
  const auto bound = InternetAddress::from(rdm_.name);
  if (!bound) throw Error(Status::system_error, "libfabric's endpoint has an address of an unknown kind");
  bound->encode(own_address_);
}

std::optional<InternetAddress> PullPort::address_in(std::span<const std::byte> token) noexcept {
  if (token.size() != token_size) return std::nullopt;
  return InternetAddress::decode(token.subspan(sizeof(Token)));
}

void PullPort::connect(const std::vector<std::byte>& address) { peer_ = rdm_.insert(address); }

void PullPort::close() noexcept {
  rdm_.endpoint.reset();
  for (Handle<fid_mr>& offer : offers_) offer.reset();
  rdm_.close();
  peer_ = FI_ADDR_UNSPEC;
  taken_ = made_;
  fetches_ = {};
  reads_ = 0;
  stalled_ = false;
}

void PullPort::abandon() noexcept {
  rdm_.abandon();
  for (Handle<fid_mr>& offer : offers_) static_cast<void>(offer.release());
}

// Registered for as long as it is offered, and for reading only.
std::size_t PullPort::offer(const engine::Piece& memory, std::span<std::byte> token) noexcept {
  if (!is_open() || made_ - taken_ == most_offers) return 0;
  fid_mr* registered = nullptr;
  const std::uint64_t key = keys_ + made_;
  if (fi_mr_reg(rdm_.domain.get(), memory.address, memory.length, FI_REMOTE_READ, 0, key, 0, &registered,
                nullptr) != 0) {
    return 0;
  }
  offers_[made_++ % most_offers].reset(registered);
  const bool by_address = keeps(*rdm_.info, FI_MR_VIRT_ADDR | FI_MR_BASIC);
  const Token place{fi_mr_key(registered),
                    by_address ? reinterpret_cast<std::uintptr_t>(memory.address) : std::uintptr_t{0}};
  std::copy(own_address_.begin(), own_address_.end(), engine::wire::store(token.data(), place));
  return token_size;
}

void PullPort::taken(std::uint64_t count) noexcept {
  while (taken_ != made_ && taken_ != count) offers_[taken_++ % most_offers].reset();
}

PullPort::Submitted PullPort::fetch(std::uint64_t number, std::span<const std::byte> token,
                                    std::uint64_t offset, std::byte* to, std::uint64_t length,
                                    std::int32_t& native_code) noexcept {
  native_code = -EPROTO;
  if (token.size() != token_size || !is_open() || !reaches()) return Submitted::broken;
  const auto place = engine::wire::load<Token>(token.data());
  Fetch& fetch = fetches_[number % most_fetches];
  fetch = {number, to, place.address + offset, place.key, length, 0, 0};
  newest_ = std::max(newest_, number);
  native_code = read_on();
  if (native_code != 0) return Submitted::broken;
  if (reads_ != 0) return Submitted::under_way;
  fetch.left = 0;
  return Submitted::no_room;
}

// The oldest first.
std::int32_t PullPort::read_on() noexcept {
  stalled_ = false;
  for (std::uint64_t age = most_fetches; age-- != 0;) {
    Fetch& fetch = fetches_[(newest_ - age) % most_fetches];
    const std::int32_t code = read_on(fetch);
    if (code == 0) continue;
    stalled_ = code == -FI_EAGAIN || code == -FI_ENOMEM || code == -FI_ENOBUFS;
    return stalled_ ? 0 : code;
  }
  return 0;
}

std::int32_t PullPort::read_on(Fetch& fetch) noexcept {
  while (fetch.left != 0 && reads_ != all_reads) {
    const auto at = static_cast<std::size_t>(std::countr_one(reads_));
    const std::uint64_t length = std::min<std::uint64_t>(fetch.left, device_.fabric().fetch_size);
    const ssize_t code =
        fi_read(rdm_.endpoint.get(), fetch.to, length, nullptr, peer_, fetch.from, fetch.key, &contexts_[at]);
    if (code != 0) return static_cast<std::int32_t>(code);
    reads_ |= 1U << at;
    reads_for_[at] = fetch.number;
    lengths_[at] = length;
    ++fetch.reads;
    fetch.to += length;
    fetch.from += length;
    fetch.left -= length;
  }
  return 0;
}

void PullPort::read_done(const void* context) noexcept {
  const auto at = static_cast<std::size_t>(static_cast<const fi_context2*>(context) - contexts_.data());
  if (at >= most_reads || (reads_ & 1U << at) == 0) return;
  reads_ &= ~(1U << at);
  const std::uint64_t number = reads_for_[at];
  Fetch& fetch = fetches_[number % most_fetches];
  --fetch.reads;
  fetch.done += lengths_[at];
  if (const std::int32_t code = read_on(); code != 0) {
    failed(-code);
  } else if (reads_ == 0 && stalled_) {
    hand_back();
  } else if (fetch.reads == 0 && fetch.left == 0) {
    events_->on_fetched(number, std::exchange(fetch.done, 0));
  }
}

// libfabric has no room and nothing under way whose end would tell of some: the rest is asked for again.
void PullPort::hand_back() noexcept {
  for (Fetch& fetch : fetches_) {
    if (fetch.left == 0 && fetch.done == 0) continue;
    fetch.left = 0;
    events_->on_fetched(fetch.number, std::exchange(fetch.done, 0));
    if (!is_open()) return;  // what arrived may have ended the endpoint
  }
}

void PullPort::failed(std::int32_t code) noexcept { events_->on_fetch_failed(code); }

bool PullPort::progress() noexcept {
  std::array<fi_cq_msg_entry, most_entries> entries;
  const ssize_t count = fi_cq_read(rdm_.completions.get(), entries.data(), entries.size());
  if (count == -FI_EAGAIN) [[likely]]
    return false;
  if (count == -FI_EAVAIL) {
    fi_cq_err_entry entry{};
    const bool read = fi_cq_readerr(rdm_.completions.get(), &entry, 0) >= 1;
    if (read && (reads_ != 0 || stalled_)) failed(entry.err);
    return true;
  }
  // What arrives may end the endpoint, and this port with it.
  for (ssize_t i = 0; i < count && is_open(); ++i) {
    read_done(entries[static_cast<std::size_t>(i)].op_context);
  }
  return true;
}

}  // namespace weft::ofi
