// Messages one way at full speed, at most `depth` of them unfinished. Where a row lets the bare side
// coalesce, a batch is one message.
#include <algorithm>

#include "pair.hpp"
#include "roles.hpp"

namespace perf::ucx {
namespace {

std::uint32_t messages_per_send(const Workload& workload) {
  return workload.native_kind == NativeKind::coalescing ? workload.batch : 1;
}

// Counts and checks the workload's messages; small ones come whole, large ones are fetched to their slots.
class Taker final : public Half {
 public:
  Taker(const Workload& workload, Lanes lanes)
      : Half(lanes), size_(workload.size), slots_(workload.size, window(workload)) {}

  void begin(std::uint64_t operations) {
    wanted_ = operations;
    taken_ = placed_ = 0;
  }
  [[nodiscard]] bool busy() const { return taken_ < wanted_; }

 protected:
  void on_message(const std::byte* bytes, std::size_t length) override {
    if (!busy()) return Half::on_message(bytes, length);
    const bool is_fetched = bytes >= slots_.slot(0) && bytes <= slots_.slot(slots_.slot_count() - 1);
    if (is_fetched) {
      // Several are fetched at a time and may finish in any order: each in the slot of its number.
      const auto slot = static_cast<std::uint64_t>(bytes - slots_.slot(0)) / size_;
      std::uint64_t number = 0;
      std::memcpy(&number, bytes, sizeof number);
      if (number % slots_.slot_count() != slot || number >= placed_) throw_wrong_stamp(slot, number);
      ++taken_;
      return;
    }
    for (std::size_t at = 0; at + size_ <= length; at += size_, ++taken_) {
      std::byte* slot = slots_.slot(taken_);
      std::memcpy(slot, bytes + at, size_);
      check_stamp(slot, taken_);
    }
  }
  std::byte* place_for(std::size_t length) override {
    return busy() ? slots_.slot(placed_++) : Half::place_for(length);
  }

 private:
  std::size_t size_;
  SlotBuffer slots_;
  std::uint64_t wanted_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t placed_ = 0;
};

class StreamServer final : public ServerRole {
 public:
  StreamServer(const Workload& workload, Lanes lanes) : taker_(workload, lanes) {}
  std::string address() const override { return to_text(taker_.worker_address()); }
  void accept() override { accept_peer(taker_); }
  void serve(std::uint64_t operations) override {
    meet(taker_, false);
    taker_.begin(operations);
    const std::byte ready{};
    taker_.tell({&ready, 1});
    while (taker_.busy()) taker_.progress();
    taker_.tell({&ready, 1});
  }

 private:
  mutable Taker taker_;
};

class StreamClient final : public ClientRole {
 public:
  StreamClient(const Workload& workload, Lanes lanes, const std::string& address)
      : half_(lanes), per_send_(messages_per_send(workload)), slots_(workload.size, window(workload)) {
    most_sends_ = std::max<std::uint64_t>(slots_.slot_count() / per_send_, 1);
    reach_peer(half_, address);
  }
  std::string fabric() const override { return half_.transports(); }

  Slice run(std::uint64_t operations) override {
    const std::uint64_t before = meet(half_, true);
    half_.await(before + 1);  // it is ready
    const auto start = RoundTripClock::Clock::now();
    for (std::uint64_t number = 0; number < operations; number += per_send_) {
      while (half_.outstanding() >= most_sends_) half_.progress();
      for (std::uint32_t i = 0; i < per_send_; ++i) stamp(slots_.slot(number + i), number + i);
      half_.send(slots_.slot(number), per_send_ * slots_.slot_size());
    }
    half_.await(before + 2);
    const std::chrono::duration<double> elapsed = RoundTripClock::Clock::now() - start;
    half_.wait_for_all();
    return {operations, elapsed.count(), {}};
  }

 private:
  Half half_;
  std::uint32_t per_send_;
  SlotBuffer slots_;
  std::uint64_t most_sends_ = 1;
};

}  // namespace

std::unique_ptr<ServerRole> make_stream_server(const Workload& workload, Lanes lanes) {
  return std::make_unique<StreamServer>(workload, lanes);
}

std::unique_ptr<ClientRole> make_stream_client(const Workload& workload, Lanes lanes,
                                               const std::string& address) {
  return std::make_unique<StreamClient>(workload, lanes, address);
}

}  // namespace perf::ucx
