// Fetching what the peer offered (offers.hpp), a step in each round of the queue, so that one endpoint does
// not hold up the others.
#include <utility>

#include "message_context.hpp"
#include "message_endpoint.hpp"
#include "program_memory.hpp"

namespace weft::engine {

void MessageEndpoint::begin_pull(std::uint64_t number) noexcept {
  pulls_due_[number % Offers::most_fetches] = true;
  pulls_refused_ = false;
  pull_soon();
}

void MessageEndpoint::pull_soon() noexcept {
  if (!std::exchange(pulls_soon_, true)) queue_.pulls(*this);
}

// Steps that the fabric goes on with by itself begin together; of others there is one.
void MessageEndpoint::pull_on() noexcept {
  pulls_soon_ = false;
  pulls_refused_ = false;
  if (!moving()) return;
  const std::uint64_t end = pulls_end();
  for (std::uint64_t number = first_pull(); number != end; ++number) {
    bool& due = pulls_due_[number % Offers::most_fetches];
    if (!due || !pulling(number)) continue;
    const Piece place = pull_place(number, queue_.message_context().message_options().pull_step);
    std::int32_t native_code = 0;
    Submitted how = Submitted::broken;
    {
      const ProgramMemoryAccess unjudged;
      how = pull(number, pull_token(number), pull_offset(number), place.address, place.length, native_code);
    }
    switch (how) {
      case Submitted::done:
      case Submitted::under_way:
        due = false;
        if (how == Submitted::under_way) break;
        pull_arrived(number, place.length);
        if (moving() && number + 1 < pulls_end()) pull_soon();
        return;
      case Submitted::no_room:
        pulls_refused_ = true;
        pull_soon();
        return;
      case Submitted::broken:
        path_broken(-native_code, "what the peer offered cannot be read; it may have ended");
        return;
    }
  }
}

void MessageEndpoint::pull_arrived(std::uint64_t number, std::uint64_t length) noexcept {
  if (!moving() || !pulling(number)) return;
  touch();
  pulled(number, length);
  if (moving() && pulling(number)) begin_pull(number);
}

}  // namespace weft::engine
