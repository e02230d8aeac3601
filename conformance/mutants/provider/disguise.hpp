// Behaviours that do something else than the program asked for, and report what it asked for.
#pragma once

#include <map>
#include <string>

#include "behaviour.hpp"

namespace mutants {

[[nodiscard]] inline bool is_send_side(Operation operation) noexcept { return operation <= Operation::flush; }
[[nodiscard]] inline bool is_atomic(Operation operation) noexcept {
  return operation == Operation::fetch_add || operation == Operation::compare_swap;
}
[[nodiscard]] inline bool is_signalled(const WorkRequest& request) noexcept {
  return !has(request.flags, Flags::unsignalled);
}
[[nodiscard]] inline bool is_inline(const WorkRequest& request) noexcept {
  return has(request.flags, Flags::inline_data);
}

// Knows where the program's regions lie.
class KnowsMemory : public Behaviour {
 public:
  void registered(Region& region) override;
  Status deregister(Region& region) override;

 protected:
  // Calls `with` with all bytes of a region, and keeps it registered meanwhile. False: there is none.
  bool with_region(std::uint64_t token, const std::function<void(std::span<std::byte>)>& with);
  // The 64-bit value at the start of a segment.
  bool with_value(const Segment& segment, const std::function<void(std::uint64_t&)>& with);

 private:
  std::mutex regions_mutex_;
  std::map<std::uint64_t, std::span<std::byte>> regions_;
};

// Batches go one by one. What completes is told as it was posted, whatever was made of it.
class Disguise : public KnowsMemory {
 public:
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override;
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override;
  void destroyed(Endpoint& endpoint) override;

 protected:
  // One signalled operation under way.
  struct Posted {
    Completion told;
    Segment first;
    weft::RemoteSegment remote;
    std::uint64_t operand = 0;
    std::uint64_t compare = 0;
  };
  // What goes to the provider in the request's place.
  virtual void change(Endpoint& /*endpoint*/, WorkRequest& /*request*/) {}
  virtual void accepted(Endpoint& /*endpoint*/, const WorkRequest& /*as_posted*/) {}
  virtual void done(const Posted& /*posted*/, Completion& /*entry*/) {}

  // With the mutex held.
  void note(const Endpoint& endpoint, const Posted& posted) { under_way_[endpoint.id()].push_back(posted); }
  Status forward(Endpoint& endpoint, const WorkRequest& request, const Posted& posted);
  [[nodiscard]] static Posted posted(const Endpoint& endpoint, const WorkRequest& request);
  [[nodiscard]] const std::deque<Posted>& under_way(const Endpoint& endpoint) {
    return under_way_[endpoint.id()];
  }

  std::mutex mutex_;

 private:
  std::map<std::uint32_t, std::deque<Posted>> under_way_;  // in posting order
};

// A Disguise made of one function.
class OnDisguise final : public Disguise {
 public:
  using Edit = std::function<void(OnDisguise&, Endpoint&, WorkRequest&)>;
  explicit OnDisguise(Edit edit) : edit_(std::move(edit)) {}
  using Behaviour::strikes;

 protected:
  void change(Endpoint& endpoint, WorkRequest& request) override { edit_(*this, endpoint, request); }

 private:
  const Edit edit_;
};

// Knows how many messages its peer sent and how many receives it posted, as long as both live in one process.
class KnowsItsPeer : public Disguise {
 public:
  PostResult post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) override;
  void establishing(Endpoint& endpoint, const provider::PeerParameters& peer) override;
  void destroyed(Endpoint& endpoint) override;

 protected:
  void count_message(Endpoint& endpoint);
  // Messages of the peer that have no receive here.
  [[nodiscard]] std::uint64_t waiting_here(Endpoint& endpoint);
  // Messages of this side that have no receive there.
  [[nodiscard]] std::uint64_t waiting_there(Endpoint& endpoint);
  // A message posted now would find no receive.
  [[nodiscard]] bool comes_early(Endpoint& endpoint);

 private:
  struct Side {
    std::atomic<std::uint64_t> messages{0};
    std::atomic<std::uint64_t> receives{0};
    std::atomic<bool> shares{false};
  };
  struct Pair {
    std::shared_ptr<Side> here = std::make_shared<Side>();
    std::string here_name;
    std::string there_name;
  };
  [[nodiscard]] Pair& pair(Endpoint& endpoint);
  [[nodiscard]] std::shared_ptr<Side> there(Endpoint& endpoint);

  std::mutex pairs_mutex_;
  std::map<std::uint32_t, Pair> pairs_;
};

}  // namespace mutants
