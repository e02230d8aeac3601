// Fetching what the peer offered (offers.hpp), a step in each round of the queue, so that one endpoint does
// not hold up the others.
#include "message_context.hpp"
#include "message_endpoint.hpp"
#include "program_memory.hpp"

namespace weft::engine {

void MessageEndpoint::begin_pull() noexcept { queue_.pulls(*this); }

bool MessageEndpoint::pull_on() noexcept {
  if (!moving() || !pulling()) return false;
  const Piece place = pull_place(queue_.message_context().message_options().pull_step);
  std::int32_t native_code = 0;
  Submitted how = Submitted::broken;
  {
    const ProgramMemoryAccess unjudged;
    how = pull(pull_token(), pull_offset(), place.address, place.length, native_code);
  }
  switch (how) {
    case Submitted::done:
      pulls_length_ = place.length;
      pull_arrived();
      return false;  // in the list again when there is more
    case Submitted::under_way:
      pulls_length_ = place.length;
      return false;
    case Submitted::no_room:
      return true;
    case Submitted::broken:
      path_broken(-native_code, "what the peer offered cannot be read; it may have ended");
      return false;
  }
  return false;
}

void MessageEndpoint::pull_arrived() noexcept {
  if (!moving() || !pulling()) return;
  touch();
  const std::uint64_t offset = pull_offset();
  const bool more = offset + pulls_length_ != pull_total();
  pulled(pulls_length_);
  if (more) queue_.pulls(*this);
}

}  // namespace weft::engine
