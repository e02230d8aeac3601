// A pair of bare libfabric endpoints as a careful user of it would set them up: reliable datagrams, messages
// in order, progress in the calls, spinning.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace perf::ofi {

[[noreturn]] void throw_libfabric_error(const char* call, std::int64_t code);

struct Close {
  template <class Object>
  void operator()(Object* object) const noexcept {
    static_cast<void>(fi_close(&object->fid));
  }
};
template <class Object>
using Handle = std::unique_ptr<Object, Close>;
struct FreeInfo {
  void operator()(fi_info* info) const noexcept { fi_freeinfo(info); }
};

/// libfabric's name of what lies beneath, and where it is bound.
struct Fabric {
  const char* provider;
  const char* node;  ///< Null: wherever its first offer with an IPv4 address is.
  bool small_queues;
};
inline constexpr Fabric tcp{"tcp;ofi_rxm", "127.0.0.1", false};
inline constexpr Fabric shm{"shm", nullptr, false};
inline constexpr Fabric verbs{"verbs;ofi_rxm", nullptr, true};

/// Memory that libfabric may send from and receive into, and that the peer may reach when it is told the key.
class Memory;

class Link {
 public:
  explicit Link(const Fabric& fabric);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  virtual ~Link() = default;

  [[nodiscard]] std::string fabric_name() const { return info_->fabric_attr->prov_name; }
  [[nodiscard]] std::vector<std::byte> address() const;
  /// Both sides do it, each with the other's address.
  void connect(std::span<const std::byte> address);
  void progress();

  /// Returns when libfabric has taken it. The bytes stay as they are until outstanding() says so.
  void send(const void* bytes, std::size_t length, const Memory& memory);
  void write(const void* bytes, std::size_t length, const Memory& memory, std::uint64_t to,
             std::uint64_t key);
  void read(void* bytes, std::size_t length, const Memory& memory, std::uint64_t from, std::uint64_t key);
  /// Receives match messages in their order.
  void receive(void* bytes, std::size_t length, const Memory& memory, std::uint64_t number);

  /// Operations started and not yet finished, receives aside.
  [[nodiscard]] std::uint64_t outstanding() const { return outstanding_; }
  void wait_for_all() {
    while (outstanding_ != 0) progress();
  }
  [[nodiscard]] fid_domain* domain() const { return domain_.get(); }
  [[nodiscard]] std::int32_t registration_mode() const { return info_->domain_attr->mr_mode; }

 protected:
  /// The receive of that number has its message; called from progress().
  virtual void on_received(std::uint64_t number, std::size_t length) = 0;

 private:
  struct Pending {
    fi_context2 context{};  // first: libfabric hands its address back
    std::uint64_t number = 0;
    bool receives = false;
  };
  Pending& next(bool receives, std::uint64_t number);
  template <class Call>
  void start(const char* name, const Call& call);

  std::unique_ptr<fi_info, FreeInfo> info_;
  Handle<fid_fabric> fabric_;
  Handle<fid_domain> domain_;
  Handle<fid_cq> completions_;
  Handle<fid_av> addresses_;
  Handle<fid_ep> endpoint_;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::uint64_t outstanding_ = 0;
  std::vector<Pending> pending_;  // a ring, longer than everything a workload lets be outstanding
  std::size_t next_pending_ = 0;
};

class Memory {
 public:
  Memory(const Link& link, std::span<std::byte> bytes);
  /// For messages: null where libfabric wants none.
  [[nodiscard]] void* description() const { return description_; }
  /// For the peer: address and key.
  [[nodiscard]] std::vector<std::byte> key() const;

 private:
  Handle<fid_mr> handle_;
  void* description_ = nullptr;
  std::uint64_t base_ = 0;
};

struct RemoteMemory {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  [[nodiscard]] static RemoteMemory from(std::span<const std::byte> bytes);
};

}  // namespace perf::ofi
