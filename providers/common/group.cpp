#include "group.hpp"

#include <utility>

#include "endpoint.hpp"

namespace weft::engine {

void Outgoing::drop_front(std::size_t taken) noexcept {
  dropped_ += taken;
  int first = 0;
  while (taken != 0 && taken >= pieces_[static_cast<std::size_t>(first)].iov_len) {
    taken -= pieces_[static_cast<std::size_t>(first++)].iov_len;
  }
  if (taken != 0) {
    iovec& piece = pieces_[static_cast<std::size_t>(first)];
    piece.iov_base = static_cast<std::byte*>(piece.iov_base) + taken;
    piece.iov_len -= taken;
  }
  if (first != 0) {
    count_ -= first;
    std::memmove(pieces_.data(), pieces_.data() + first, static_cast<std::size_t>(count_) * sizeof(iovec));
  }
}

void Group::release_held_back() noexcept {
  while (!held_back_.empty()) {
    Endpoint* endpoint = held_back_.back();
    held_back_.pop_back();
    endpoint->send_held_back();
  }
}

void Group::send_all_due(bool patient) noexcept {
  std::size_t kept = 0;
  while (due_.size() > kept) {
    Endpoint* endpoint = due_.back();
    if (patient && endpoint->waits_for_more()) {
      std::swap(due_.back(), due_[kept++]);
      continue;
    }
    due_.pop_back();
    endpoint->send_due();
  }
}

std::unique_ptr<Outgoing> Group::keep_outgoing() {
  std::unique_ptr<Outgoing> next;
  if (spare_.empty()) {
    next = std::make_unique<Outgoing>();
    spare_.reserve(spare_.capacity() + 1);
  } else {
    next = std::move(spare_.back());
    spare_.pop_back();
  }
  return std::exchange(current_, std::move(next));
}

void Group::give_back(std::unique_ptr<Outgoing> outgoing) noexcept {
  outgoing->clear();
  if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(outgoing));
}

}  // namespace weft::engine
