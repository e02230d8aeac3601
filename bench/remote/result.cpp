#include "result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <weft/version.hpp>

#include "../workload.hpp"

namespace perf::remote {
namespace {

constexpr double per_microsecond = 1000;
constexpr double mega = 1e6;

struct Percentile {
  const char* name;
  double fraction;
};
constexpr std::array percentiles = {Percentile{"p50", 0.5}, Percentile{"p90", 0.9}, Percentile{"p99", 0.99},
                                    Percentile{"p99.9", 0.999}};

double microseconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / per_microsecond; }

double rate_of(const Done& done) {
  return done.seconds > 0 ? static_cast<double>(done.operations) / done.seconds : 0;
}

std::string size_column(const Row& row) { return size_text(row.size); }

}  // namespace

double Result::rate() const { return rate_of(measured.client) + rate_of(measured.server); }

std::string heading(const Sides& sides, const Row& first) {
  const std::string fabric = sides.fabric.empty() || sides.fabric == sides.provider ? "" : ":" + sides.fabric;
  const auto side = [](const std::string& address, const std::string& device) {
    return device.empty() || device == "any" ? address : fmt::format("{} ({})", address, device);
  };
  return fmt::format(
      "{}{}, from {} to {}; thread mode {}, {}{}{}\n", sides.provider, fabric,
      side(sides.client_address, sides.client_device), side(sides.server_address, sides.server_device),
      sides.threads, first.events ? "sleeping until something completes" : "polling",
      first.check ? ", every byte looked at" : "", first.bidirectional ? ", both ways at once" : "");
}

std::string table_header(Test test) {
  std::string text = fmt::format("{:<20} {:<9} {:>8}", "operation", "test", "size");
  if (test == Test::latency) {
    text += fmt::format(" {:>9} {:>10}", "endpoints", "operations");
    for (const Percentile& percentile : percentiles) text += fmt::format(" {:>8}", percentile.name);
    return text + fmt::format(" {:>9} {:>8}\n", "max us", "mean us");
  }
  return text + fmt::format(" {:>5} {:>5} {:>9} {:>10} {:>9} {:>9} {:>8}\n", "depth", "batch", "endpoints",
                            "operations", "M op/s", "MB/s", "Gbit/s");
}

std::string table_row(const Result& result) {
  const Row& row = result.row;
  std::string text =
      fmt::format("{:<20} {:<9} {:>8}", to_string(row.kind), to_string(row.test), size_column(row));
  if (row.test == Test::latency) {
    const Histogram& latencies = result.measured.latencies;
    text += fmt::format(" {:>9} {:>10}", row.endpoints, result.operations());
    for (const Percentile& percentile : percentiles) {
      text += fmt::format(" {:>8.2f}", microseconds(latencies.quantile(percentile.fraction)));
    }
    return text + fmt::format(" {:>9.2f} {:>8.2f}\n", microseconds(latencies.largest()),
                              latencies.mean() / per_microsecond);
  }
  const double bytes = result.rate() * static_cast<double>(row.size);
  return text + fmt::format(" {:>5} {:>5} {:>9} {:>10} {:>9.4f} {:>9.2f} {:>8.3f}\n", row.depth, row.batch,
                            row.endpoints, result.operations(), result.rate() / mega, bytes / mega,
                            bytes * 8 / (mega * 1000));
}

std::string histogram_text(const Histogram& latencies) {
  constexpr std::uint32_t per_doubling = 4;
  constexpr double width = 50;
  const std::vector<Histogram::Bucket> buckets = latencies.buckets(per_doubling);
  std::uint64_t most = 1;
  for (const auto& bucket : buckets) most = std::max(most, bucket.count);
  std::string text;
  for (const auto& bucket : buckets) {
    const auto bars =
        static_cast<std::size_t>(static_cast<double>(bucket.count) / static_cast<double>(most) * width);
    text +=
        fmt::format("  {:>10.2f} us and up {:>10} {:>8.3f} % {}\n", microseconds(bucket.low), bucket.count,
                    100.0 * static_cast<double>(bucket.count) / static_cast<double>(latencies.count()),
                    std::string(std::max<std::size_t>(bars, 1), '#'));
  }
  return text;
}

std::string json_text(const Sides& sides, const std::vector<Result>& results) {
  using Ordered = nlohmann::ordered_json;
  constexpr std::uint32_t per_doubling = 16;
  Ordered rows = Ordered::array();
  for (const Result& result : results) {
    const Row& row = result.row;
    Ordered one = {{"operation", to_string(row.kind)},
                   {"test", to_string(row.test)},
                   {"size", row.size},
                   {"depth", row.depth},
                   {"batch", row.batch},
                   {"endpoints", row.endpoints},
                   {"bidirectional", row.bidirectional},
                   {"events", row.events},
                   {"check", row.check},
                   {"operations", result.operations()},
                   {"seconds", result.measured.client.seconds},
                   {"operations_per_second", result.rate()},
                   {"bytes_per_second", result.rate() * static_cast<double>(row.size)}};
    if (row.test == Test::latency) {
      const Histogram& latencies = result.measured.latencies;
      Ordered latency = {{"level", is_ping_pong(row) ? "half of the way there and back" : "until complete"}};
      for (const Percentile& percentile : percentiles) {
        latency[percentile.name] = microseconds(latencies.quantile(percentile.fraction));
      }
      latency["max"] = microseconds(latencies.largest());
      latency["mean"] = latencies.mean() / per_microsecond;
      Ordered histogram = Ordered::array();
      for (const auto& bucket : latencies.buckets(per_doubling)) {
        histogram.push_back({{"from", microseconds(bucket.low)}, {"count", bucket.count}});
      }
      latency["histogram"] = std::move(histogram);
      one["latency_us"] = std::move(latency);
    }
    rows.push_back(std::move(one));
  }
  const Ordered report = {{"weft_version", weft::version()},
                          {"provider", sides.provider},
                          {"fabric", sides.fabric},
                          {"threads", sides.threads},
                          {"client", {{"device", sides.client_device}, {"address", sides.client_address}}},
                          {"server",
                           {{"device", sides.server_device},
                            {"address", sides.server_address},
                            {"weft_version", sides.server_version}}},
                          {"results", std::move(rows)}};
  return report.dump(1, ' ', false, Ordered::error_handler_t::replace) + "\n";
}

std::string csv_text(const Sides& sides, const std::vector<Result>& results) {
  std::string text =
      "provider,fabric,threads,operation,test,size,depth,batch,endpoints,bidirectional,events,check,"
      "operations,seconds,"
      "operations_per_second,bytes_per_second,p50_us,p90_us,p99_us,p99.9_us,max_us,mean_us\n";
  for (const Result& result : results) {
    const Row& row = result.row;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{:d},{:d},{:d},{},{:.6f},{:.1f},{:.1f}", sides.provider,
                        sides.fabric, sides.threads, to_string(row.kind), to_string(row.test), row.size,
                        row.depth, row.batch, row.endpoints, row.bidirectional, row.events, row.check,
                        result.operations(), result.measured.client.seconds, result.rate(),
                        result.rate() * static_cast<double>(row.size));
    if (row.test == Test::latency) {
      const Histogram& latencies = result.measured.latencies;
      for (const Percentile& percentile : percentiles) {
        text += fmt::format(",{:.3f}", microseconds(latencies.quantile(percentile.fraction)));
      }
      text += fmt::format(",{:.3f},{:.3f}\n", microseconds(latencies.largest()),
                          latencies.mean() / per_microsecond);
    } else {
      text += ",,,,,,\n";
    }
  }
  return text;
}

void write_file(const std::string& file, const std::string& text) {
  if (file == "-") {
    std::cout << text << std::flush;
    return;
  }
  errno = 0;
  std::ofstream output(file);
  output << text;
  output.close();
  if (!output) {
    throw std::runtime_error(
        fmt::format("cannot write '{}': {}", file, std::generic_category().message(errno)));
  }
}

}  // namespace perf::remote
