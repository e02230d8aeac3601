// Follows every operation of a context from its post to the moment the program takes its completion.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "decorators/common/book.hpp"
#include "findings.hpp"
#include "ledger.hpp"
#include "weft/completion.hpp"

namespace weft::check {

// Open operations of one endpoint's side, or of one shared receive queue, in posting order.
using OpenList = std::list<Open>;

struct EndpointBook {
  OpenList sends;
  OpenList receives;
  OpenList* shared = nullptr;  // the receive queue it takes from
};

class Watch {
 public:
  Watch(Findings& findings, ThreadMode mode) : findings_(findings), mode_(mode) {}

  // Everything else wants it held: posts and polls go one at a time, so that what is noted has an order.
  [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }
  [[nodiscard]] decorator::RegionBook& regions() noexcept { return regions_; }
  [[nodiscard]] Findings& findings() noexcept { return findings_; }

  void add_endpoint(std::uint32_t id, EndpointBook& book);
  void remove_endpoint(std::uint32_t id);

  // Before the post: what the operation would be.
  [[nodiscard]] Open opened(const WorkRequest& request, const std::string& owner) const;
  [[nodiscard]] Open opened(const ReceiveRequest& request, const std::string& owner) const;
  // After it: taken, or refused for good.
  void accept(OpenList& list, Open open);
  void refuse(const Open& open, std::span<const Segment> segments, Status status,
              const std::string& remote_reason);

  // The program takes this entry.
  void taken(const Completion& entry);
  // No completion of these will come any more.
  void drop(OpenList& list);
  // The region is the program's again: what is still open there is over.
  void forget_region(std::uint64_t region);

  // One caller at a time in thread mode single (THR-2).
  class Caller {
   public:
    explicit Caller(Watch& watch) noexcept;
    ~Caller();
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

   private:
    Watch& watch_;
    bool inside_ = false;
  };

 private:
  [[nodiscard]] std::vector<Piece> pieces_of(std::span<const Segment> segments) const;
  void close(OpenList& list, OpenList::iterator open, bool succeeded);
  void taken_send(OpenList& sends, const Completion& entry);
  void taken_receive(EndpointBook& book, const Completion& entry);
  [[nodiscard]] std::string what_is_wrong(std::span<const Segment> segments, bool written) const;

  Findings& findings_;
  const ThreadMode mode_;
  std::mutex mutex_;
  decorator::RegionBook regions_;
  Ledger ledger_;
  std::unordered_map<std::uint32_t, EndpointBook*> endpoints_;
  std::atomic<long> caller_{0};
};

}  // namespace weft::check
