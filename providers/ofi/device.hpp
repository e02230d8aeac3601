// What a context opens: one fabric with the attributes that were asked for and granted, from which each
// completion queue makes its own domain, so that queues share nothing and need no lock.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabrics.hpp"
#include "handles.hpp"

namespace weft::ofi {

class Device {
 public:
  // `address`: bind to that sockaddr; empty: any. `interface`: wanted domain where addresses are not used.
  // Throws Error: unavailable, when libfabric offers nothing that keeps what is needed, or it cannot be
  // opened.
  Device(const Fabric& fabric, std::span<const std::byte> address, std::string_view interface);
  // What libfabric has to be told through the environment, before it is asked for the fabric that is to be
  // used (not by those who only look). Where the user has set it, nothing is written. Whoever reads the
  // environment in another thread at this moment, without the C library's lock, may be disturbed.
  static void apply_setting(const Fabric& fabric);

  // What of the device's name libfabric is asked for.
  [[nodiscard]] static std::string_view interface_of(const Fabric& fabric, std::string_view device) noexcept {
    return fabric.by_address || fabric.named_here ? std::string_view() : device;
  }

  [[nodiscard]] const Fabric& fabric() const noexcept { return fabric_; }
  [[nodiscard]] fid_fabric* native() const noexcept { return native_.get(); }
  [[nodiscard]] std::string device_name() const;
  // With addresses of devices: the only one that any has, "any" when there are several. Link addresses do not
  // count.
  [[nodiscard]] std::string only_address() const;
  // A copy, with a name of its own for an endpoint where this side names them.
  [[nodiscard]] InfoHandle info(std::uint64_t name) const;
  [[nodiscard]] Handle<fid_domain> open_domain(fi_info& info) const;
  // Copies are made at once up to here.
  [[nodiscard]] std::size_t inject_size() const noexcept { return info_->tx_attr->inject_size; }
  [[nodiscard]] std::size_t message_size() const noexcept;
  [[nodiscard]] bool needs_registration() const noexcept;

 private:
  [[nodiscard]] InfoHandle find(std::span<const std::byte> address, std::string_view interface) const;

  const Fabric& fabric_;
  InfoHandle info_;
  Handle<fid_fabric> native_;
};

// This provider's version, with that of the libfabric it was built with.
inline constexpr const char* provider_version = "0.1.0 (libfabric " WEFT_LIBFABRIC_VERSION ")";
// The version that runs, "1.17".
[[nodiscard]] std::string library_version();

}  // namespace weft::ofi
