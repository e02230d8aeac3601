// The endpoint of libfabric through which the messages of a completion queue go, of many weft endpoints.
// Bound to one address: libfabric's rxm tells two sides that connect to each other at once apart by their
// addresses, which must not be wildcards.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/message_endpoint.hpp"
#include "rdm_endpoint.hpp"

namespace weft::ofi {

// What a port tells of.
class PortEvents {
 public:
  virtual void on_message(const std::byte* bytes, std::size_t length) noexcept = 0;
  // As above; the header came beside the bytes.
  virtual void on_message(const engine::message::Header& header, const std::byte* payload,
                          std::size_t length) noexcept = 0;
  virtual void on_sent(engine::SendBuffer& buffer) noexcept = 0;
  virtual void on_send_failed(engine::SendBuffer& buffer, std::int32_t code) noexcept = 0;

 protected:
  ~PortEvents() = default;
};

class Port {
 public:
  // `number`: random, names the endpoint where this side names them. Throws Error.
  [[nodiscard]] static std::shared_ptr<Port> open(std::unique_ptr<Device> device, std::uint64_t number,
                                                  std::size_t message_size, PortEvents& events);
  Port(std::unique_ptr<Device> device, std::uint64_t number, std::size_t message_size, PortEvents& events);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  ~Port();
  // Its owner goes and calls nothing of it any more. Other ports of this process may keep it for a while.
  void retire() noexcept;

  // The endpoint's address as libfabric tells it.
  [[nodiscard]] const std::vector<std::byte>& name() const noexcept { return rdm_.name; }
  [[nodiscard]] bool speaks_ipv4_only() const noexcept { return rdm_.info->addr_format == FI_SOCKADDR_IN; }
  // To sleep on; -1: none.
  [[nodiscard]] int descriptor() const noexcept { return rdm_.descriptor; }
  [[nodiscard]] const Device& device() const noexcept { return *device_; }

  // ---- with the gate held
  // Several endpoints with the same peer share its place. Throws Error.
  [[nodiscard]] fi_addr_t add_peer(const std::vector<std::byte>& address);
  void drop_peer(const std::vector<std::byte>& address) noexcept;
  [[nodiscard]] engine::MessageEndpoint::Submitted submit(engine::SendBuffer& buffer, fi_addr_t peer,
                                                          std::int32_t& native_code) noexcept;
  // As MessageEndpoint::submit_small.
  [[nodiscard]] engine::MessageEndpoint::Submitted submit_small(const engine::message::Header& header,
                                                                const iovec& bytes, fi_addr_t peer,
                                                                std::int32_t& native_code) noexcept;
  bool progress() noexcept;
  // Nothing is there, and what comes makes the descriptor readable.
  [[nodiscard]] bool may_sleep() noexcept { return rdm_.may_sleep(*device_); }
  [[nodiscard]] void* register_memory(std::byte* bytes, std::size_t length);

 private:
  // A place for a message to arrive. Where tags carry the header its bytes land behind the place of one.
  struct Receive {
    fi_context2 context{};  // first: libfabric hands its address back
    std::byte* bytes = nullptr;
  };
  struct Peer {
    fi_addr_t address = FI_ADDR_UNSPEC;
    std::uint32_t users = 0;
    std::shared_ptr<Port> here;  // when it is of this process, and its memory must outlive what is sent to it
  };
  static constexpr std::size_t most_entries = 32;
  static constexpr std::size_t receives_wanted = 64;

  [[nodiscard]] bool uses_tags() const noexcept { return swift_size_ != 0; }
  template <class Entry>
  bool read_completions() noexcept;
  void take(Receive& receive, const fi_cq_msg_entry& entry) noexcept;
  void take(Receive& receive, const fi_cq_tagged_entry& entry) noexcept;
  void take_error() noexcept;
  void post(Receive& receive) noexcept;
  void post_missing() noexcept;
  [[nodiscard]] Receive* receive_of(void* context) noexcept;
  void make_receives();

  std::unique_ptr<Device> device_;
  PortEvents& events_;
  const std::size_t message_size_;
  const std::size_t inject_size_;
  const std::size_t swift_size_;  // 0: no tags
  // Outlive the endpoint, in whose hands they are.
  std::unique_ptr<std::byte[]> receive_memory_;
  void* receive_registration_ = nullptr;
  std::vector<Receive> receives_;
  std::vector<Receive*> unposted_;
  RdmEndpoint rdm_;
  std::map<std::string, Peer> peers_;  // by address
};

}  // namespace weft::ofi
