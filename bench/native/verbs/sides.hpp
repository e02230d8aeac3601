// The two sides of every measurement, in step over the exchange: one starts the operations, measures and
// writes the rows, the other answers and checks that the data arrived. The same over any link.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "exchange.hpp"
#include "latency.hpp"
#include "options.hpp"
#include "rows.hpp"
#include "throughput.hpp"

namespace weft::native {

inline constexpr std::uint64_t longest_run = 100'000'000;
inline constexpr std::uint8_t initiator_pattern = 0x5a;
inline constexpr std::uint8_t target_pattern = 0xa5;

inline bool all_bytes_are(std::span<const std::uint8_t> bytes, std::uint8_t wanted) {
  return std::all_of(bytes.begin(), bytes.end(), [wanted](std::uint8_t byte) { return byte == wanted; });
}

inline void require_payload(bool right, const Work& work) {
  if (!right) {
    throw std::runtime_error("after " + std::string(name_of(work.operation)) + " of " +
                             std::to_string(work.size) + " bytes the memory does not hold what was sent");
  }
}

// A baseline that did not move the data would be a fast one: look at the memory once the clock has stopped.
template <class Link>
void check_at_target(Link& link, const Work& work, std::uint64_t operations) {
  if (work.operation == Operation::fetch_add) {
    std::uint64_t sum = 0;
    std::memcpy(&sum, link.target().data(), sizeof sum);
    require_payload(sum == operations, work);
  } else if (work.operation != Operation::read && work.kind != Kind::latency) {
    require_payload(all_bytes_are(link.target().first(work.size), initiator_pattern), work);
  }
}

template <class Link>
void check_at_initiator(Link& link, const Work& work) {
  if (work.operation == Operation::read) {
    require_payload(all_bytes_are(link.source().first(work.size), target_pattern), work);
  }
}

template <class Link>
void fill(Link& link, const Work& work, bool initiator) {
  if (work.operation == Operation::read) {
    if (!initiator) std::ranges::fill(link.target(), target_pattern);
  } else if (work.operation != Operation::fetch_add) {
    std::ranges::fill(link.source(), initiator_pattern);
  }
}

template <class Link>
void post_first_receives(Link& link, const Work& work) {
  if (!consumes_receive(work.operation)) return;
  for (std::uint32_t left = link.receive_depth(); left > 0;) {
    const std::uint32_t count = std::min(left, Link::receive_chunk);
    link.post_receives(count);
    left -= count;
  }
}

// A link that knows how often the device was called: that need not be how often the link was.
template <class Link>
concept counts_itself = requires(const Link& link) {
  link.counts();
};

inline constexpr std::uint64_t no_more_runs = 0;

template <class Link>
Measured initiate(Link& link, const Work& work) {
  return work.kind == Kind::latency ? initiate_latency(link, work) : initiate_throughput(link, work);
}

// Fewer say nothing, however long they took on a busy machine.
inline std::uint64_t fewest(const Work& work) {
  switch (work.kind) {
    case Kind::latency:
      return 200;
    case Kind::rate:
      return std::uint64_t{8} * work.depth;
    case Kind::bandwidth:
      return std::clamp<std::uint64_t>((16U << 20) / work.size, 16, std::uint64_t{8} * work.depth);
  }
  return 1;
}

// Finds how many operations last about as long as asked, by runs that grow; they warm everything up as well.
template <typename RunOnce>
std::uint64_t find_count(const Work& work, const Options& options, RunOnce run_once) {
  const auto whole_batches = [&work](double count) {
    return static_cast<std::uint64_t>(std::ceil(count / work.batch)) * work.batch;
  };
  std::uint64_t count = whole_batches(16);
  while (true) {
    const auto start = std::chrono::steady_clock::now();
    run_once(count);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // At most tenfold at a time, as a short run says little about a long one.
    const double factor = std::min(10.0, options.seconds / std::max(seconds, 1e-6));
    if (factor < 1.5 || count > longest_run) {
      const double wanted = static_cast<double>(count) * std::min(factor, 1.5);
      return whole_batches(std::max(wanted, static_cast<double>(fewest(work))));
    }
    count = whole_batches(static_cast<double>(count) * factor);
  }
}

template <class Link>
void be_initiator(typename Link::Device& device, Exchange& exchange, const Options& options) {
  Rows rows(device.name);
  for (const Work& planned : options.works) {
    Work work = planned;
    Link link(device, exchange, work, true);
    fill(link, work, true);
    post_first_receives(link, work);
    std::uint64_t performed = 0;
    const auto run_once = [&](std::uint64_t operations) {
      work.operations = operations;
      exchange.swap(operations);
      exchange.meet();
      [[maybe_unused]] Counts before;
      if constexpr (counts_itself<Link>) before = link.counts();
      Measured measured = initiate(link, work);
      const std::uint64_t posts = measured.doorbells;
      if constexpr (counts_itself<Link>) {
        const Counts after = link.counts();
        measured.doorbells = after.doorbells - before.doorbells;
        measured.signals = after.signals - before.signals;
      }
      exchange.meet();
      // A latency run rings once per operation, those of its warming up included.
      performed += work.kind == Kind::latency ? posts : operations;
      return measured;
    };
    const std::uint64_t operations =
        planned.operations > 0 ? planned.operations : find_count(work, options, run_once);
    std::vector<Measured> runs;
    for (std::uint32_t run = 0; run < options.runs; ++run) runs.push_back(run_once(operations));
    check_at_initiator(link, work);
    rows.add(work, runs);
    exchange.swap(no_more_runs);
    exchange.swap(performed);
    exchange.meet();
  }
  if (options.output_file.empty()) {
    rows.write(std::cout);
    return;
  }
  std::ofstream file(options.output_file);
  rows.write(file);
  file.close();
  if (!file) throw std::system_error(errno, std::generic_category(), "cannot write " + options.output_file);
}

template <class Link>
void be_target(typename Link::Device& device, Exchange& exchange, const Options& options) {
  for (Work work : options.works) {
    Link link(device, exchange, work, false);
    fill(link, work, false);
    post_first_receives(link, work);
    while ((work.operations = exchange.swap(no_more_runs)) != no_more_runs) {
      exchange.meet();
      if (work.kind == Kind::latency) {
        answer_latency(link, work);
      } else {
        answer_throughput(link, work);
      }
      exchange.meet();
    }
    check_at_target(link, work, exchange.swap(std::uint64_t{0}));
    exchange.meet();
  }
}

}  // namespace weft::native
