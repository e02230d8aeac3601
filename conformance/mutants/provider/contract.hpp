// What the mutants share that were written from the contract's words.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "mutant.hpp"

namespace mutants {

// Into the table, with the mark that it was written from the contract alone.
inline void add_blindly(std::vector<Mutant>& mutants, Mutant mutant) {
  mutant.from_contract = true;
  mutants.push_back(std::move(mutant));
}

[[nodiscard]] constexpr bool is_send_side(Operation operation) noexcept {
  return operation <= Operation::flush;
}
[[nodiscard]] constexpr bool is_atomic(Operation operation) noexcept {
  return operation == Operation::fetch_add || operation == Operation::compare_swap;
}
[[nodiscard]] constexpr bool reaches_memory(Operation operation) noexcept {
  return operation != Operation::send && operation < Operation::flush;
}
[[nodiscard]] constexpr bool wraps(std::uint64_t a, std::uint64_t b) noexcept { return a + b < a; }

// Takes a request without forwarding it: it completes as it likes.
inline Status pretend(Endpoint& endpoint, const WorkRequest& request, Status status = Status::ok) {
  if (status == Status::ok && weft::has(request.flags, Flags::unsignalled)) return Status::ok;
  Completion entry = endpoint.completion_of(request);
  entry.status = status;
  if (status != Status::ok) entry.bytes = 0;
  endpoint.send_queue().inject(entry);
  return Status::ok;
}

// One by one, each first offered to `own`, which may answer in the provider's place.
template <class Own>
PostResult one_by_one(Endpoint& endpoint, const WorkRequest* requests, std::size_t count, Own own) {
  PostResult result;
  if (count == 0) return endpoint.inner().post(requests, count);
  for (; result.accepted < count; ++result.accepted) {
    const WorkRequest& request = requests[result.accepted];
    const std::optional<Status> answered = own(request);
    result.status = answered ? *answered : endpoint.inner().post(&request, 1).status;
    if (result.status != Status::ok) break;
  }
  return result;
}

// Knows the regions that live, by their tokens.
class KnowsRegions : public Behaviour {
 public:
  void registered(Region& region) override {
    const std::lock_guard lock(mutex_);
    regions_[region.token()] = region.request();
  }
  Status deregister(Region& region) override {
    const Status status = Behaviour::deregister(region);
    if (status == Status::ok) forget(region);
    return status;
  }

 protected:
  void forget(const Region& region) {
    const std::lock_guard lock(mutex_);
    regions_.erase(region.token());
  }
  [[nodiscard]] std::optional<weft::RegistrationRequest> region(std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(token);
    return found == regions_.end() ? std::nullopt : std::optional(found->second);
  }
  // Where the segment's bytes are; null when it names no live region, or a place outside.
  [[nodiscard]] std::byte* place(const Segment& segment) {
    const auto found = region(segment.region);
    if (!found || segment.offset > found->length || segment.length > found->length - segment.offset)
      return nullptr;
    return static_cast<std::byte*>(found->address) + segment.offset;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, weft::RegistrationRequest> regions_;
};

// Knows what was imported, and through which endpoint.
class KnowsKeys : public Behaviour {
 public:
  struct Key {
    std::uint32_t endpoint = 0;
    provider::Endpoint::Imported imported;
  };
  provider::Endpoint::Imported import_key(Endpoint& endpoint, std::span<const std::byte> key) override {
    const auto imported = Behaviour::import_key(endpoint, key);
    const std::lock_guard lock(mutex_);
    keys_[imported.token] = {endpoint.id(), imported};
    return imported;
  }

 protected:
  [[nodiscard]] std::optional<Key> key_of(const WorkRequest& request) {
    if (!reaches_memory(request.operation)) return std::nullopt;
    const std::lock_guard lock(mutex_);
    const auto found = keys_.find(request.remote.memory);
    return found == keys_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, Key> keys_;
};

}  // namespace mutants
