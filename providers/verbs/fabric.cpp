#include "fabric.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "errors.hpp"

namespace weft::verbs {

Timers Timers::of(std::chrono::milliseconds peer_timeout, bool exact) noexcept {
  const std::chrono::milliseconds most = exact ? peer_timeout * 9 / 20 : peer_timeout / 6;
  constexpr std::uint8_t least = 8;      // 1 ms: less is noise of the wire
  constexpr std::uint8_t greatest = 21;  // 8.6 s
  Timers timers;
  timers.probe_after = peer_timeout / 3;
  timers.acknowledge = least;
  while (timers.acknowledge < greatest) {
    Timers longer = timers;
    ++longer.acknowledge;
    if (longer.gives_up_after() > most) break;
    timers = longer;
  }
  return timers;
}

std::chrono::microseconds Timers::gives_up_after() const noexcept {
  constexpr std::uint64_t unit = 4096;  // ns
  return std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::nanoseconds((unit << acknowledge) * (retries + 1)));
}

std::uint8_t Timers::receiver_dry(std::uint8_t acknowledge) noexcept {
  // From 4 on every second code doubles 0.04 ms, and the one between is half as much again.
  constexpr std::uint64_t first = 40'000;  // ns
  constexpr std::uint8_t longest = 26;     // 82 ms: what is posted late is not to wait for longer
  const std::uint64_t limit = (std::uint64_t{4096} << acknowledge) / 2;
  std::uint8_t code = receiver_not_ready;
  while (code < longest) {
    const unsigned next = code + 1U;
    const std::uint64_t base = first << ((next - 4) / 2);
    if (base + (next % 2 == 1 ? base / 2 : 0) > limit) break;
    ++code;
  }
  return code;
}

Fabric::Fabric(provider::Host& host, Port port, const provider::OpenRequest& request,
               const FabricOptions& options)
    : port_(std::move(port)),
      options_(options),
      timers_(Timers::of(request.peer_timeout, port_.software())),
      gid_is_fixed_(options.gid_index.has_value()),
      device_is_named_(!request.beneath.empty()) {
  // The events of the device are read by the helper, which must not sleep in there.
  const int flags = fcntl(device()->async_fd, F_GETFL);
  if (flags < 0 || fcntl(device()->async_fd, F_SETFL, flags | O_NONBLOCK) != 0)
    fail_call("cannot watch the events of device " + port_.name, errno);

  const ibv_gid_entry* gid = nullptr;
  if (options.gid_index) {
    gid = port_.gid(*options.gid_index);
    if (gid == nullptr) {
      throw Error(Status::not_found, "port " + std::to_string(port_.number) + " of device " + port_.name +
                                         " has no GID at index " + std::to_string(*options.gid_index) +
                                         ": its table has " + std::to_string(port_.state.gid_tbl_len) +
                                         " places, of which " + std::to_string(port_.gids.size()) +
                                         " are filled (`ibv_devinfo -v` lists them)");
    }
  } else if (!request.address.empty()) {
    gid = port_.gid_of(request.address);
  }
  if (gid == nullptr) gid = port_.usual_gid();
  if (gid != nullptr) gid_ = *gid;

  domain_.reset(ibv_alloc_pd(device()));
  if (!domain_) fail_call("cannot make a protection domain on device " + port_.name, errno);
  if (request.thread_mode == ThreadMode::single) {
    ibv_td_init_attr wanted{};
    threads_.reset(ibv_alloc_td(device(), &wanted));
    if (threads_) {
      ibv_parent_domain_init_attr parent{};
      parent.pd = domain_.get();
      parent.td = threads_.get();
      parent_.reset(ibv_alloc_parent_domain(device(), &parent));
    }
  }
  readable_.reset(ibv_reg_mr(domain_.get(), &words_[0], sizeof words_[0], int{IBV_ACCESS_REMOTE_READ}));
  if (!readable_) fail_registration(sizeof words_[0], errno);
  landing_.reset(ibv_reg_mr(domain_.get(), &words_[1], sizeof words_[1], int{IBV_ACCESS_LOCAL_WRITE}));
  if (!landing_) fail_registration(sizeof words_[1], errno);

  host.log(LogLevel::debug,
           "device " + port_.name + " port " + std::to_string(port_.number) + ": GID index " +
               std::to_string(gid_.gid_index) + (gid_is_fixed_ ? " (as told)" : "") + " " +
               address_text(port_, gid_) + ", acknowledge timer " + std::to_string(timers_.acknowledge) +
               " with " + std::to_string(Timers::retries) + " retries (gives up after " +
               std::to_string(timers_.gives_up_after().count() / 1000) + " ms), idle probe every " +
               std::to_string(timers_.probe_after.count()) + " ms, receiver-not-ready timer " +
               std::to_string(Timers::receiver_not_ready) + " for ever, largest message " +
               std::to_string(port_.state.max_msg_sz) + " bytes" +
               (request.thread_mode == ThreadMode::single && !parent_
                    ? ", the device has no lock-free thread domains"
                    : ""));
}

const ibv_gid_entry& Fabric::gid_for(std::span<const std::byte> local_address) const {
  if (!port_.ethernet() || gid_is_fixed_) return gid_;
  if (const ibv_gid_entry* entry = port_.gid_of(local_address)) return *entry;
  // A connection of this host with itself, or by another network than the device's: whoever named the device
  // wants it nevertheless.
  if (device_is_named_ || is_loopback(local_address)) return gid_;
  throw Error(Status::unreachable,
              "the connection's local address does not belong to RDMA device " + port_.name +
                  ", whose address is " + address_text(port_, gid_) +
                  "; connect to an address in that network, or name the device (verbs:" + port_.name + ")");
}

void Fabric::enter_child() noexcept {
  // The child's copies would keep the parent's queue pairs up after its death (MEM-7).
  ::close(device()->async_fd);
  ::close(device()->cmd_fd);
  static_cast<void>(readable_.release());
  static_cast<void>(landing_.release());
  static_cast<void>(parent_.release());
  static_cast<void>(threads_.release());
  static_cast<void>(domain_.release());
  static_cast<void>(port_.device.release());
}

}  // namespace weft::verbs
