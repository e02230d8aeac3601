#include "device.hpp"

#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "address.hpp"
#include "errors.hpp"
#include "weft/status.hpp"

namespace weft::ofi {

namespace {

// From here on everything used exists; later versions of the library keep it.
constexpr auto interface_version = FI_VERSION(1, 14);

// Messages, tagged where the tag carries what would stand in front of the others, and reads of payload that a
// side offers. Other one-sided operations and atomics go through the engine, which checks every access.
[[nodiscard]] std::uint64_t wanted_of(const Fabric& fabric) noexcept {
  const std::uint64_t messages = fabric.swift_size != 0 ? FI_TAGGED : FI_MSG;
  return fabric.fetch_size != 0 ? messages | FI_RMA | FI_READ | FI_REMOTE_READ : messages;
}

InfoHandle make_hints(const Fabric& fabric) {
  InfoHandle hints(fi_allocinfo());
  if (hints == nullptr) throw Error(Status::resource_limit, "out of memory for libfabric's description");
  hints->caps = wanted_of(fabric);
  // We give the library memory of ours to write into with every operation.
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  if (fabric.manual) {
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  }
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->tx_attr->inject_size = fabric.inject_size;
  if (fabric.queue_size != 0) {
    hints->tx_attr->size = fabric.queue_size;
    hints->rx_attr->size = fabric.queue_size;
  }
  hints->fabric_attr->prov_name = strdup(fabric.library_name);
  return hints;
}

void set_source(fi_info& info, std::span<const std::byte> bytes, std::uint32_t format) {
  std::free(info.src_addr);
  info.src_addr = std::malloc(bytes.size());
  if (info.src_addr == nullptr) throw Error(Status::resource_limit, "out of memory for an address");
  std::memcpy(info.src_addr, bytes.data(), bytes.size());
  info.src_addrlen = bytes.size();
  info.addr_format = format;
}

InfoHandle ask(fi_info* hints, std::int64_t& code) {
  fi_info* found = nullptr;
  code = fi_getinfo(interface_version, nullptr, nullptr, 0, hints, &found);
  return InfoHandle(code == 0 ? found : nullptr);
}

// The first that is the wanted provider and keeps what was asked for.
const fi_info* choose(const fi_info* all, const Fabric& fabric, std::string_view interface) {
  for (const fi_info* at = all; at != nullptr; at = at->next) {
    if (std::string_view(at->fabric_attr->prov_name) != fabric.library_name) continue;
    if ((at->caps & wanted_of(fabric)) != wanted_of(fabric) || (at->tx_attr->msg_order & FI_ORDER_SAS) == 0)
      continue;
    if ((at->rx_attr->msg_order & FI_ORDER_SAS) == 0) continue;
    if (fabric.swift_size != 0 && at->domain_attr->cq_data_size < sizeof(std::uint64_t)) continue;
    if (!fabric.by_address && !interface.empty() && interface != at->domain_attr->name) continue;
    return at;
  }
  return nullptr;
}

}  // namespace

void Device::apply_setting(const Fabric& fabric) {
  if (fabric.setting == nullptr || ::setenv(fabric.setting, "1", 0) == 0) return;
  throw Error(Status::system_error, "cannot set " + std::string(fabric.setting) +
                                        " in the environment, from which libfabric reads it: " +
                                        std::generic_category().message(errno));
}

Device::Device(const Fabric& fabric, std::span<const std::byte> address, std::string_view interface)
    : fabric_(fabric), info_(find(address, interface)) {
  fid_fabric* native = nullptr;
  check(fi_fabric(info_->fabric_attr, &native, nullptr), "libfabric's fabric cannot be opened");
  native_.reset(native);
  const InfoHandle copy = info(0);
  static_cast<void>(open_domain(*copy));  // it really can
}

InfoHandle Device::find(std::span<const std::byte> address, std::string_view interface) const {
  const InfoHandle hints = make_hints(fabric_);
  std::int64_t code = 0;
  InfoHandle all;
  if (!fabric_.by_address) {
    all = ask(hints.get(), code);
  } else if (const auto wanted = InternetAddress::from(address)) {
    InternetAddress bound = *wanted;
    bound.port = 0;
    const bool narrow = bound.is_mapped();
    set_source(*hints, bound.as_socket_address(narrow, scope_of(address)),
               narrow ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6);
    all = ask(hints.get(), code);
  } else {
    // Every address of this host: an IPv6 socket takes IPv4 as well; where there is no IPv6, IPv4 alone.
    InternetAddress any;
    set_source(*hints, any.as_socket_address(false, 0), FI_SOCKADDR_IN6);
    all = ask(hints.get(), code);
    if (all == nullptr) {
      set_source(*hints, any.as_socket_address(true, 0), FI_SOCKADDR_IN);
      all = ask(hints.get(), code);
    }
  }
  const fi_info* const chosen = choose(all.get(), fabric_, interface);
  if (chosen == nullptr) {
    const std::string why = code != 0 ? text_of(code) : "none of its offers keeps the order of messages";
    throw Error(Status::unavailable,
                "libfabric " + library_version() + " offers no '" + fabric_.library_name + "' here: " + why +
                    "; is the device there, and is this build of libfabric made for it?");
  }
  InfoHandle info(fi_dupinfo(chosen));
  if (info == nullptr) throw Error(Status::resource_limit, "out of memory for libfabric's description");
  return info;
}

InfoHandle Device::info(std::uint64_t name) const {
  InfoHandle copy(fi_dupinfo(info_.get()));
  if (copy == nullptr) throw Error(Status::resource_limit, "out of memory for libfabric's description");
  // Offered as safe for all threads, it may still be used as what was asked for, which spares its locks.
  copy->domain_attr->threading = FI_THREAD_DOMAIN;
  if (fabric_.named_here) {
    std::array<char, 64> text{};
    const int length = std::snprintf(text.data(), text.size(), "fi_shm://weft-%016llx",
                                     static_cast<unsigned long long>(name));
    set_source(*copy, std::as_bytes(std::span(text).first(static_cast<std::size_t>(length) + 1)),
               FI_ADDR_STR);
  }
  return copy;
}

Handle<fid_domain> Device::open_domain(fi_info& info) const {
  fid_domain* domain = nullptr;
  check(fi_domain(native_.get(), &info, &domain, nullptr), "libfabric's domain cannot be opened");
  return Handle<fid_domain>(domain);
}

std::string Device::device_name() const { return info_->domain_attr->name; }

std::string Device::only_address() const {
  std::int64_t code = 0;
  const InfoHandle all = ask(make_hints(fabric_).get(), code);
  std::string address;
  for (const fi_info* at = all.get(); at != nullptr; at = at->next) {
    if (std::string_view(at->fabric_attr->prov_name) != fabric_.library_name || at->src_addr == nullptr)
      continue;
    const auto own = InternetAddress::from({static_cast<const std::byte*>(at->src_addr), at->src_addrlen});
    if (!own || own->is_on_link() || own->is_loopback()) continue;
    const std::string text = own->text();
    if (!address.empty() && text != address) return "any";
    address = text;
  }
  return address.empty() ? "any" : address;
}

std::size_t Device::message_size() const noexcept {
  return std::min<std::size_t>(fabric_.message_size, info_->ep_attr->max_msg_size);
}

bool Device::needs_registration() const noexcept { return (info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0; }

std::string library_version() {
  const std::uint32_t version = fi_version();
  return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

}  // namespace weft::ofi
