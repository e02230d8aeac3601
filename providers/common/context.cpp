#include "context.hpp"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "shared_receives.hpp"

namespace weft::engine {

namespace {

class Region final : public provider::MemoryRegion {
 public:
  Region(Context& context, const RegionEntry& entry, const Key& key)
      : context_(context), token_(key.region), atomics_(has(entry.access, Access::remote_atomic)) {
    key.encode(key_);
  }

  [[nodiscard]] std::uint64_t token() const noexcept override { return token_; }
  [[nodiscard]] std::span<const std::byte> key() const noexcept override { return key_; }
  [[nodiscard]] AtomicScope atomic_scope() const noexcept override {
    return atomics_ ? AtomicScope::device_and_cpu : AtomicScope::none;
  }
  Status deregister() noexcept override { return context_.deregister(token_); }
  void collect_users(std::vector<std::uint32_t>& endpoint_ids) override {
    context_.collect_users(token_, endpoint_ids);
  }
  void cancel_shared_receives() noexcept override { context_.cancel_shared_receives(token_); }

 private:
  Context& context_;
  const std::uint64_t token_;
  const bool atomics_;
  std::array<std::byte, Key::size> key_{};
};

constexpr auto all_access =
    Access::local_write | Access::remote_read | Access::remote_write | Access::remote_atomic;
constexpr auto writing = Access::local_write | Access::remote_write | Access::remote_atomic;

std::string hexadecimal(std::uintptr_t value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

// Looks at the memory as the kernel would: a page of the range that cannot be read, or written when that is
// asked for, is an error now and not at first use (MEM-1). /proc/self/maps is the authority that does not
// touch the pages.
void check_memory(const std::byte* address, std::uint64_t length, Access access) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t end = begin + length;
  if (end < begin) {
    throw Error(Status::invalid_argument, "cannot register memory: " + std::to_string(length) + " bytes at " +
                                              hexadecimal(begin) +
                                              " wrap around the end of the address space");
  }
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return;
  std::uintptr_t covered = begin;
  std::string refusal;
  std::array<char, 512> line{};
  while (covered < end && std::fgets(line.data(), line.size(), maps) != nullptr) {
    unsigned long long from = 0;
    unsigned long long to = 0;
    std::array<char, 8> rights{};
    if (std::sscanf(line.data(), "%llx-%llx %7s", &from, &to, rights.data()) != 3 || to <= covered) continue;
    if (from > covered) break;
    if (rights[0] != 'r') {
      refusal = "it cannot be read";
    } else if ((access & writing) != Access::none && rights[1] != 'w') {
      refusal =
          "it is mapped read-only, and the access asked for writes to it; register it with Access::none or "
          "Access::remote_read, or map it writable";
    }
    if (!refusal.empty()) break;
    covered = to;
  }
  std::fclose(maps);
  if (refusal.empty() && covered < end) refusal = "nothing is mapped at " + hexadecimal(covered);
  if (!refusal.empty()) {
    throw Error(Status::invalid_argument, "cannot register " + std::to_string(length) + " bytes at " +
                                              hexadecimal(begin) + ": " + refusal);
  }
}

}  // namespace

Context::Context(provider::Host& host, const provider::OpenRequest& request, const EngineOptions& options)
    : host_(host),
      thread_mode_(request.thread_mode),
      progress_mode_(request.progress_mode),
      options_(options) {
  limits_.max_message = std::uint64_t{1} << 40;
  limits_.max_transfer = std::uint64_t{1} << 40;
  limits_.max_inline = max_inline;
  limits_.max_segments = max_segments;
  limits_.send_depth = 1U << 16;
  limits_.receive_depth = 1U << 16;
  limits_.max_outstanding_reads = options.max_outstanding_reads;
  limits_.unexpected_bytes = options.window;
}

Context::~Context() = default;

void Context::fill_attributes(Attributes& attributes) const {
  attributes.thread_mode = thread_mode_;
  attributes.progress_mode = progress_mode_;
  attributes.atomic_scope = AtomicScope::device_and_cpu;
  attributes.limits = limits_;
  attributes.max_key_size = Key::size;
  attributes.segment_size = options_.frame_payload;
}

std::unique_ptr<provider::MemoryRegion> Context::register_memory(const RegistrationRequest& request) {
  if (request.kind != RegistrationRequest::Kind::host) {
    throw Error(
        Status::unsupported,
        "cannot register device memory: this provider moves bytes with the CPU and takes host memory only");
  }
  if (request.length == 0) throw Error(Status::invalid_argument, "cannot register memory: its length is 0");
  if (request.address == nullptr)
    throw Error(Status::invalid_argument, "cannot register memory at the null address");
  if ((request.access & all_access) != request.access) {
    throw Error(Status::invalid_argument, "cannot register memory: the access has unknown bits");
  }
  auto* address = static_cast<std::byte*>(request.address);
  check_memory(address, request.length, request.access);
  Secret secret;
  host_.random_bytes(std::as_writable_bytes(std::span(&secret, 1)));
  const RegionEntry& entry = regions_.add(address, request.length, request.access, secret);
  Key key;
  key.region = entry.token.load();
  key.length = request.length;
  key.access = request.access;
  key.misalignment = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(address) % 8);
  key.secret = secret;
  try {
    return std::make_unique<Region>(*this, entry, key);
  } catch (...) {
    regions_.retire(key.region);
    regions_.free(key.region);
    throw;
  }
}

std::unique_ptr<provider::ReceiveQueue> Context::create_receive_queue(provider::CompletionQueue& queue,
                                                                      std::uint32_t depth,
                                                                      std::uint64_t user_value) {
  return std::make_unique<SharedReceives>(*this, static_cast<Group&>(queue), depth, user_value);
}

void Context::add_group(Group& group) {
  const std::lock_guard lock(groups_mutex_);
  groups_.push_back(&group);
}

namespace {

constexpr std::array<const char*, 5> count_names = {"transmissions", "refused_transmissions", "arrivals",
                                                    "empty_arrivals", "updates"};

std::array<std::uint64_t, count_names.size()> values_of(const Counts& counts) noexcept {
  return {counts.transmissions.load(std::memory_order_relaxed),
          counts.refused_transmissions.load(std::memory_order_relaxed),
          counts.arrivals.load(std::memory_order_relaxed),
          counts.empty_arrivals.load(std::memory_order_relaxed),
          counts.updates.load(std::memory_order_relaxed)};
}

}  // namespace

void Context::remove_group(Group& group) noexcept {
  const std::lock_guard lock(groups_mutex_);
  std::erase(groups_, &group);
  const auto values = values_of(group.counts());
  for (std::size_t i = 0; i < values.size(); ++i) counted_before_[i] += values[i];
}

std::vector<Counter> Context::counters() const {
  const std::lock_guard lock(groups_mutex_);
  std::vector<Counter> counters;
  for (std::size_t i = 0; i < count_names.size(); ++i)
    counters.push_back({count_names[i], counted_before_[i]});
  for (const Group* group : groups_) {
    const auto values = values_of(group->counts());
    for (std::size_t i = 0; i < values.size(); ++i) counters[i].value += values[i];
  }
  return counters;
}

std::vector<Group*> Context::groups() const {
  const std::lock_guard lock(groups_mutex_);
  return groups_;
}

Status Context::deregister(std::uint64_t token) noexcept {
  // No group moves while all gates are held, so that looking and forgetting are one step (MEM-5). The list's
  // lock keeps groups from coming and going; gates are always entered in its order.
  const std::lock_guard lock(groups_mutex_);
  for (Group* group : groups_) group->gate().enter_helper();
  bool local = false;
  bool remote = false;
  const bool live = regions_.find(token) != nullptr;
  for (const Group* group : groups_) {
    for (const Endpoint* endpoint : group->members()) {
      local = local || endpoint->local_operation_uses(token);
      remote = remote || endpoint->remote_operation_uses(token);
    }
    for (const SharedReceives* receives : group->shared_receives()) local = local || receives->uses(token);
  }
  if (!local && live) regions_.retire(token);
  if (!local && !remote) regions_.free(token);
  for (Group* group : groups_) group->gate().leave_helper();
  if (local) return Status::busy;
  return remote ? Status::again : Status::ok;
}

void Context::collect_users(std::uint64_t token, std::vector<std::uint32_t>& endpoint_ids) {
  const std::lock_guard lock(groups_mutex_);
  for (Group* group : groups_) {
    const HelperEntry inside_gate(group->gate());
    for (const Endpoint* endpoint : group->members()) {
      if (endpoint->local_operation_uses(token) || endpoint->remote_operation_uses(token)) {
        endpoint_ids.push_back(endpoint->id());
      }
    }
  }
}

void Context::cancel_shared_receives(std::uint64_t token) noexcept {
  const std::lock_guard lock(groups_mutex_);
  for (Group* group : groups_) {
    const HelperEntry inside_gate(group->gate());
    for (SharedReceives* receives : group->shared_receives()) receives->cancel(token);
  }
}

void Context::enter_child() noexcept {
  // The parent's other threads are gone, perhaps with locks held: touch nothing that could wait.
  for (Group* group : groups_) {
    group->gate().reset();
    for (Endpoint* endpoint : group->members()) endpoint->make_inert();
  }
}

}  // namespace weft::engine
