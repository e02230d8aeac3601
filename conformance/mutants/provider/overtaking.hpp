// Operations that are passed by later ones.
#pragma once

#include "disguise.hpp"

namespace mutants {

// Holds an operation of one kind back; when the next one is of the other kind, that goes first, and what was
// held follows when the other is complete, or a little later. What is told comes in posting order all the
// same.
class Overtaking : public Disguise {
 public:
  using Kind = std::function<bool(const WorkRequest&)>;
  Overtaking(Kind held, Kind passing) : held_(std::move(held)), passing_(std::move(passing)) {}

  void open(provider::Context& inner, const provider::OpenRequest& request) override;
  PostResult post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) override;
  std::size_t poll(Queue& queue, Completion* out, std::size_t room) override;
  Clock::time_point service(provider::Context& inner, Clock::time_point now) override;
  void drain(Endpoint& endpoint) override;
  void end(Endpoint& endpoint, const provider::EndOrder& order) override;
  void destroyed(Endpoint& endpoint) override;

 private:
  // One operation, with all it points to.
  struct Held {
    Endpoint* endpoint = nullptr;
    WorkRequest request;
    std::vector<Segment> segments;
    std::vector<std::vector<std::byte>> inline_bytes;
    Clock::time_point since;
    bool passed = false;
    bool may_go = false;
  };
  // Nobody would refuse it: so it can be held back.
  [[nodiscard]] bool is_sound(const Endpoint& endpoint, const WorkRequest& request);
  [[nodiscard]] static Held copy(Endpoint& endpoint, const WorkRequest& request);
  // False: there is no room yet.
  bool release(std::uint32_t endpoint_id);
  void release_due();

  const Kind held_;
  const Kind passing_;
  bool is_single_ = false;
  std::map<std::uint32_t, Held> waiting_;
};

[[nodiscard]] inline auto overtaken(const Overtaking::Kind& held, const Overtaking::Kind& passing) {
  return [=] { return std::make_unique<Overtaking>(held, passing); };
}

}  // namespace mutants
