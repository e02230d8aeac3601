// The opened device of a context: its domains, the GID in use, timers, and the library's own memory that
// peers may read.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>

#include "port.hpp"
#include "weft/provider/provider.hpp"

namespace weft::verbs {

// Timers of queue pairs, as verbs counts them.
struct Timers {
  static constexpr std::uint8_t retries = 6;  // 7 means "for ever" on Soft-RoCE
  static constexpr std::uint8_t receiver_not_ready_for_ever = 7;
  static constexpr std::uint8_t receiver_not_ready = 12;  // 0.64 ms; 0 would mean 655 ms

  std::uint8_t acknowledge = 0;           // 4.096 us << acknowledge
  std::chrono::milliseconds probe_after;  // an idle path is tried when nothing was heard for so long

  // All tries together stay below a sixth of the time: adapters may take up to four times as long, and the
  // probe comes on top (ERR-3). A device that keeps to the time it is told, as those made of software do,
  // gets nine twentieths, so that a wire may be gone for longer.
  [[nodiscard]] static Timers of(std::chrono::milliseconds peer_timeout, bool exact) noexcept;
  [[nodiscard]] std::chrono::microseconds gives_up_after() const noexcept;
  // Soft-RoCE sends a whole message again each time that it found no receive, which a CPU has to do; so where
  // there has been none for long it is to try less often. Its acknowledge timer runs on meanwhile, so the
  // wait must be shorter than that of the sender.
  [[nodiscard]] static std::uint8_t receiver_dry(std::uint8_t acknowledge) noexcept;
};

struct FabricOptions {
  std::optional<std::uint32_t> gid_index;
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
  std::optional<bool> extended;  // nothing: where it is of use
};

class Fabric {
 public:
  // Throws Error.
  Fabric(provider::Host& host, Port port, const provider::OpenRequest& request, const FabricOptions& options);

  [[nodiscard]] ibv_context* device() const noexcept { return port_.device.get(); }
  [[nodiscard]] ibv_pd* domain() const noexcept { return domain_.get(); }
  // For queue pairs, completion queues and shared receive queues: without the driver's locks where the device
  // has such domains and the context is of mode `single` (THR-2).
  [[nodiscard]] ibv_pd* pair_domain() const noexcept { return parent_ ? parent_.get() : domain_.get(); }
  [[nodiscard]] ibv_pd* lock_free_domain() const noexcept { return parent_.get(); }
  [[nodiscard]] const Port& port() const noexcept { return port_; }
  [[nodiscard]] const Timers& timers() const noexcept { return timers_; }
  [[nodiscard]] const FabricOptions& options() const noexcept { return options_; }
  [[nodiscard]] const ibv_gid_entry& usual_gid() const noexcept { return gid_; }

  // The GID for a connection whose TCP connection has this local address. Throws Error(unreachable).
  [[nodiscard]] const ibv_gid_entry& gid_for(std::span<const std::byte> local_address) const;

  // Eight bytes that peers read for `flush`, and eight where our own such reads land.
  [[nodiscard]] std::uint64_t readable_address() const noexcept { return address_of(0); }
  [[nodiscard]] std::uint64_t landing_address() const noexcept { return address_of(1); }
  [[nodiscard]] std::uint32_t readable_key() const noexcept { return readable_->rkey; }
  [[nodiscard]] std::uint32_t landing_key() const noexcept { return landing_->lkey; }

  // In a forked child: keeps every handle, closes the descriptors.
  void enter_child() noexcept;

 private:
  [[nodiscard]] std::uint64_t address_of(std::size_t index) const noexcept {
    return reinterpret_cast<std::uint64_t>(&words_[index]);
  }

  Port port_;
  FabricOptions options_;
  Timers timers_;
  ibv_gid_entry gid_{};
  bool gid_is_fixed_ = false;  // chosen by the user
  bool device_is_named_ = false;
  DomainHandle domain_;
  ThreadDomainHandle threads_;
  DomainHandle parent_;
  alignas(64) std::array<std::uint64_t, 2> words_{};
  RegionHandle readable_;
  RegionHandle landing_;
};

}  // namespace weft::verbs
