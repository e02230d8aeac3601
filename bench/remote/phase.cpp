#include "phase.hpp"

#include <chrono>
#include <optional>

namespace perf::remote {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds answer_time{60};
constexpr std::uint64_t most_batches = std::uint64_t{1} << 48;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Json message(const char* name, Json content) {
  return {{"weft_perf", wire_version}, {name, std::move(content)}};
}

// Tells the next batch from the last ones: those are signalled, so that everything before them is known
// complete.
class Schedule {
 public:
  Schedule(const Row& row, std::uint32_t batch, const Amount& amount)
      : lanes_(row.endpoints),
        end_(amount.operations == 0 ? most_batches : (amount.operations + batch - 1) / batch),
        deadline_(Clock::now() +
                  std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(amount.seconds))),
        timed_(amount.operations == 0) {}

  // Call before each batch.
  void look_at_clock() {
    if (!timed_ || Clock::now() < deadline_) return;
    timed_ = false;
    end_ = next_ + lanes_;  // a last one for each lane
  }
  void look_at_clock(Clock::time_point now) {
    if (timed_ && now >= deadline_) end_ = next_;
  }
  [[nodiscard]] bool is_over() const { return next_ >= end_; }
  [[nodiscard]] bool is_among_last() const { return next_ + lanes_ >= end_; }
  void count() { ++next_; }
  [[nodiscard]] std::uint64_t counted() const { return next_; }

 private:
  std::uint64_t lanes_;
  std::uint64_t end_;
  Clock::time_point deadline_;
  bool timed_;
  std::uint64_t next_ = 0;
};

// Both directions of bandwidth and rate rows, and the passive half of everything. Ends when what this side
// started is complete and acknowledged, and what the peer started has arrived and was acknowledged.
class Stream {
 public:
  Stream(Site& site, Sender* sender, bool peer_sends, const Amount& amount)
      : site_(site),
        sender_(sender),
        peer_sends_(peer_sends),
        schedule_(site.row(), site.row().batch, amount),
        start_(Clock::now()) {}

  Done run() {
    while (!is_over()) {
      const bool posted = sender_ != nullptr && post();
      site_.take(!posted);
      if (sender_ != nullptr) finish_own();
      if (site_.has_heard()) listen(*site_.hear());
      if (peer_batches_ && !answered_) answer();
    }
    return done_;
  }

 private:
  bool post() {
    if (schedule_.is_over() || !sender_->has_room()) return false;
    schedule_.look_at_clock();
    sender_->look_at_results();
    sender_->post_batch(schedule_.is_among_last());
    schedule_.count();
    return true;
  }

  void finish_own() {
    if (told_ || !schedule_.is_over() || !sender_->is_idle()) return;
    sender_->look_at_results();
    done_ = {schedule_.counted() * sender_->batch(), seconds_since(start_)};
    if (!takes_receive(site_.row().kind) && !fetches_only()) sender_->flush();
    site_.tell(message("done", {{"batches", sender_->batches()}}));
    told_ = true;
  }

  [[nodiscard]] bool fetches_only() const { return site_.row().kind == Kind::read; }

  void listen(const Json& heard) {
    if (heard.contains("done")) {
      peer_batches_ = number_of(heard["done"], "batches", most_batches);
    } else if (heard.contains("arrived")) {
      acknowledged_ = true;
      // A message counts once it has arrived; anything else once it is complete, which is before this.
      if (takes_receive(site_.row().kind)) done_.seconds = seconds_since(start_);
    } else {
      throw Unintelligible("something else than the progress of this row was said");
    }
  }

  void answer() {
    const Row& row = site_.row();
    if (takes_receive(row.kind)) {
      std::uint64_t expected = 0;
      for (std::uint32_t lane = 0; lane < row.endpoints; ++lane)
        expected += messages_of_lane(row, *peer_batches_, lane);
      if (site_.arrived() < expected) return;
    }
    if (row.check) check_left_bytes(site_, *peer_batches_);
    site_.tell(message("arrived", {{"batches", *peer_batches_}}));
    answered_ = true;
  }

  [[nodiscard]] bool is_over() const {
    return (sender_ == nullptr || acknowledged_) && (!peer_sends_ || answered_);
  }

  Site& site_;
  Sender* sender_;
  bool peer_sends_;
  Schedule schedule_;
  Clock::time_point start_;
  Done done_;
  std::optional<std::uint64_t> peer_batches_;
  bool told_ = false;
  bool acknowledged_ = false;
  bool answered_ = false;
};

void wait_for_acknowledgement(Site& site, Sender& sender) {
  if (leaves_bytes(site.row().kind) || is_atomic(site.row().kind)) {
    if (!takes_receive(site.row().kind)) sender.flush();
  }
  site.tell(message("done", {{"batches", sender.batches()}}));
  const Json heard = site.await(answer_time);
  if (!heard.contains("arrived")) throw Unintelligible("the server did not say that all has arrived");
}

// One operation at a time. A way there and back counts half.
Done one_by_one(Site& site, Sender& sender, const Amount& amount, Histogram& latencies) {
  const bool there_and_back = is_ping_pong(site.row());
  Schedule schedule(site.row(), 1, amount);
  const Clock::time_point start = Clock::now();
  Clock::time_point last = start;
  std::uint64_t wanted = site.arrived();
  for (; !schedule.is_over(); schedule.count()) {
    while (!sender.has_room()) site.take(true);
    sender.post_batch(!there_and_back);
    if (there_and_back) {
      for (++wanted; site.arrived() < wanted;) site.take(true);
    } else {
      while (!sender.is_last_complete()) site.take(true);
      sender.look_at_results();
    }
    const Clock::time_point now = Clock::now();
    const auto nanoseconds = static_cast<std::uint64_t>((now - last).count());
    latencies.note(there_and_back ? nanoseconds / 2 : nanoseconds);
    last = now;
    schedule.look_at_clock(now);
  }
  return {schedule.counted(), std::chrono::duration<double>(last - start).count()};
}

// The other half of a ping-pong: everything goes back, until the client says that it is over.
void echo(Site& site, Sender& sender) {
  std::uint64_t echoed = sender.batches();
  for (;;) {
    site.take(true);
    while (echoed < site.arrived()) {
      while (!sender.has_room()) site.take(true);
      sender.post_batch(false);
      ++echoed;
    }
    if (site.has_heard()) {
      const auto heard = site.hear();
      if (!heard->contains("done")) throw Unintelligible("something else than the end of this row was said");
      const std::uint64_t batches = number_of((*heard)["done"], "batches", most_batches);
      while (site.arrived() < batches) site.take(true);
      site.tell(message("arrived", {{"batches", batches}}));
      return;
    }
  }
}

Done done_of(const Json& heard) {
  if (!heard.contains("outcome")) throw Unintelligible("the server did not say what came of it");
  constexpr double longest = 1e7;
  return {number_of(heard["outcome"], "operations", most_batches),
          real_of(heard["outcome"], "seconds", longest)};
}

}  // namespace

PhaseResult run_as_client(Site& site, Sender& sender, const Amount& amount) {
  const Row& row = site.row();
  PhaseResult result;
  site.tell(message("go", amount_json(amount)));
  if (!site.await(answer_time).contains("ready"))
    throw Unintelligible("the server did not say that it is ready");
  if (row.test == Test::latency) {
    result.client = one_by_one(site, sender, amount, result.latencies);
    wait_for_acknowledgement(site, sender);
  } else {
    result.client = Stream(site, &sender, row.bidirectional, amount).run();
  }
  result.server = done_of(site.await(answer_time));
  return result;
}

void run_as_server(Site& site, Sender& sender, const Amount& amount, std::chrono::seconds patience) {
  const Row& row = site.row();
  Done done;
  // A row that is counted and not timed may be long; then the next client at least gets its turn some time.
  constexpr std::chrono::seconds counted{3600};
  const bool timed = amount.operations == 0;
  site.limit(patience +
             (timed ? std::chrono::ceil<std::chrono::seconds>(std::chrono::duration<double>(amount.seconds))
                    : counted));
  site.tell(message("ready", true));
  if (is_ping_pong(row)) {
    echo(site, sender);
  } else {
    done = Stream(site, row.bidirectional ? &sender : nullptr, true, amount).run();
  }
  site.tell(message("outcome", {{"operations", done.operations}, {"seconds", done.seconds}}));
}

}  // namespace perf::remote
