#include "watch.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::check {

void Watch::add_endpoint(std::uint32_t id, EndpointBook& book) { endpoints_[id] = &book; }

void Watch::remove_endpoint(std::uint32_t id) { endpoints_.erase(id); }

std::vector<Piece> Watch::pieces_of(std::span<const Segment> segments) const {
  std::vector<Piece> pieces;
  for (const Segment& segment : segments) {
    const auto region = regions_.find(segment.region);
    if (!region || !decorator::lies_inside(segment.offset, segment.length, region->length)) continue;
    pieces.push_back({region->address + segment.offset, segment.length, segment.region});
  }
  return pieces;
}

Open Watch::opened(const WorkRequest& request, const std::string& owner) const {
  Open open;
  open.operation = request.operation;
  open.context = request.context;
  open.signalled = !has(request.flags, Flags::unsignalled);
  open.owner = owner;
  open.written = request.operation == Operation::read || request.operation == Operation::fetch_add ||
                 request.operation == Operation::compare_swap;
  if (!has(request.flags, Flags::inline_data)) open.pieces = pieces_of(request.segments);
  return open;
}

Open Watch::opened(const ReceiveRequest& request, const std::string& owner) const {
  Open open;
  open.operation = Operation::receive;
  open.context = request.context;
  open.owner = owner;
  open.written = true;
  open.pieces = pieces_of(request.segments);
  return open;
}

void Watch::accept(OpenList& list, Open open) {
  if (const Open* other = ledger_.conflict(open)) {
    findings_.add(
        Misuse::overlap,
        fmt::format("{} was posted over memory that still belongs to {}: wait for its completion, or use "
                    "other memory",
                    open.text(), other->text()));
  }
  if (!open.written) open.checksum = checksum_of(open.pieces);
  list.push_back(std::move(open));
  ledger_.add(list.back());
}

std::string Watch::what_is_wrong(std::span<const Segment> segments, bool written) const {
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = segments[i];
    const auto region = regions_.find(segment.region);
    if (!region) {
      return fmt::format("its segment {} names region {:#x}, which is not registered (any more)", i,
                         segment.region);
    }
    if (!decorator::lies_inside(segment.offset, segment.length, region->length)) {
      return fmt::format("its segment {} is {} bytes at offset {} of a region of {} bytes", i, segment.length,
                         segment.offset, region->length);
    }
    if (written && !has(region->access, Access::local_write)) {
      return fmt::format("its segment {} lies in a region registered without local_write", i);
    }
  }
  return {};
}

void Watch::refuse(const Open& open, std::span<const Segment> segments, Status status,
                   const std::string& remote_reason) {
  if (status == Status::ok || status == Status::again || status == Status::not_connected) return;
  std::string reason = status == Status::invalid_argument ? what_is_wrong(segments, open.written) : "";
  if (reason.empty()) reason = remote_reason;
  if (!reason.empty()) {
    findings_.add(Misuse::outside, fmt::format("{} was refused: {}", open.text(), reason));
  } else {
    findings_.add(Misuse::refused,
                  fmt::format("{} was refused and can never work: {}", open.text(), to_string(status)));
  }
}

void Watch::close(OpenList& list, OpenList::iterator open, bool succeeded) {
  if (succeeded && !open->written && !open->pieces.empty() && checksum_of(open->pieces) != open->checksum) {
    findings_.add(
        Misuse::altered,
        fmt::format("the memory of {} changed between its post and its completion: what arrived may be "
                    "either, or a mixture",
                    open->text()));
  }
  ledger_.remove(*open);
  list.erase(open);
}

// A completion stands for everything before it (CMP-4).
void Watch::taken_send(OpenList& sends, const Completion& entry) {
  const bool succeeded = entry.status == Status::ok;
  const auto found = std::find_if(sends.begin(), sends.end(), [&](const Open& open) {
    return open.operation == entry.operation && open.context == entry.context &&
           (open.signalled || !succeeded);
  });
  if (found == sends.end()) return;
  const auto after = std::next(found);
  while (sends.begin() != after) {
    // Those before it succeeded; of a failed one nothing is known.
    close(sends, sends.begin(), succeeded || std::next(sends.begin()) != after);
  }
}

void Watch::taken_receive(EndpointBook& book, const Completion& entry) {
  OpenList& list = book.shared != nullptr ? *book.shared : book.receives;
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const Open& open) { return open.context == entry.context; });
  if (found != list.end()) close(list, found, true);
}

void Watch::taken(const Completion& entry) {
  const auto found = endpoints_.find(entry.endpoint_id);
  if (found == endpoints_.end()) return;
  EndpointBook& book = *found->second;
  if (entry.operation <= Operation::flush) {
    taken_send(book.sends, entry);
  } else if (entry.operation == Operation::receive) {
    taken_receive(book, entry);
  } else if (entry.operation == Operation::endpoint_ended) {
    drop(book.sends);
    drop(book.receives);
  }
}

void Watch::drop(OpenList& list) {
  for (const Open& open : list) ledger_.remove(open);
  list.clear();
}

void Watch::forget_region(std::uint64_t region) {
  const auto uses = [&](const Open& open) {
    return std::any_of(open.pieces.begin(), open.pieces.end(),
                       [&](const Piece& piece) { return piece.region == region; });
  };
  for (const auto& [id, book] : endpoints_) {
    for (OpenList* list : {&book->sends, &book->receives}) {
      for (Open& open : *list) {
        if (!uses(open)) continue;
        ledger_.remove(open);
        open.pieces.clear();
      }
    }
  }
}

Watch::Caller::Caller(Watch& watch) noexcept : watch_(watch) {
  if (watch_.mode_ != ThreadMode::single) return;
  const long me = ::gettid();
  long other = 0;
  inside_ = watch_.caller_.compare_exchange_strong(other, me);
  if (inside_ || other == me) return;
  try {
    watch_.findings_.add(
        Misuse::second_thread,
        fmt::format("thread {} called into a context of thread mode single while thread {} was in a "
                    "call: open it with thread mode safe, or let one thread at a time call",
                    me, other));
  } catch (const std::bad_alloc&) {  // no memory for the text
  }
}

Watch::Caller::~Caller() {
  if (inside_) watch_.caller_.store(0);
}

}  // namespace weft::check
