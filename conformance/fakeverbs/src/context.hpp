// Devices and what a program has opened.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "adapter.hpp"

namespace fakeverbs {

struct Device : ibv_device {
  const DeviceSettings* settings;
  std::uint32_t index;
  std::uint64_t guid;  // in network byte order
};

[[nodiscard]] Device& device(std::size_t index);
[[nodiscard]] std::size_t device_count();

class Context : public verbs_context {
 public:
  [[nodiscard]] static Context* open(Device& device);  // null and errno
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();
  [[nodiscard]] static Context& of(ibv_context* context) {
    return static_cast<Context&>(*verbs_get_ctx(context));
  }

  [[nodiscard]] Adapter& adapter() const { return *adapter_; }
  [[nodiscard]] Device& device() const { return device_; }
  [[nodiscard]] std::uint32_t channel() const { return channel_; }

  // Asynchronous events; none is lost when the descriptor has no room.
  void raise(ibv_event_type type, std::uint32_t handle);
  [[nodiscard]] int next_event(Event& event);

  [[nodiscard]] bool fatal() const { return fatal_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool port_is_down() const { return port_down_.load(std::memory_order_relaxed); }
  // The faults of the whole device. The device thread carries them out.
  void break_down();
  void take_port_down(std::uint32_t up_after_ms);
  void look(Clock::time_point now);

 private:
  Context(std::shared_ptr<Adapter> adapter, Device& device);
  [[nodiscard]] bool open_descriptors();
  void fill_operations();
  void send_pending();

  std::shared_ptr<Adapter> adapter_;
  Device& device_;
  std::uint32_t channel_;
  std::atomic<bool> fatal_{false};
  std::atomic<bool> fatal_told_{false};
  std::atomic<bool> port_down_{false};
  std::atomic<std::int64_t> port_up_at_{0};  // nanoseconds of Clock; 0 never
  std::mutex pending_mutex_;
  std::deque<Event> pending_;
};

struct Domain : ibv_pd {
  Context* owner;
  std::uint32_t number;
  std::atomic<std::uint32_t> users{0};
};

// The attributes of a device, as limits and faults have them.
void describe(const Context& context, ibv_device_attr& attributes);
void describe(const Context& context, ibv_port_attr& attributes);

}  // namespace fakeverbs
