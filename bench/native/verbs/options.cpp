#include "options.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <iostream>
#include <stdexcept>

namespace weft::native {
namespace {

namespace po = boost::program_options;

struct Lists {
  std::vector<std::string> operations;
  std::vector<std::string> kinds;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint32_t> batches;
  std::uint32_t depth = 0;
  std::uint64_t count = 0;
};

std::vector<std::uint64_t> default_sizes(Kind kind) {
  switch (kind) {
    case Kind::latency:
      return {8, 64, 4096};
    case Kind::rate:
      return {8, 64};
    case Kind::bandwidth:
      return {4096, 65536, 1 << 20};
  }
  return {};
}

void add_work(std::vector<Work>& works, Work work, std::uint64_t wanted_count) {
  if (work.size == 0 || work.size > 1U << 30) {
    throw std::invalid_argument("--size " + std::to_string(work.size) + " is not from 1 to 2^30");
  }
  if (work.depth == 0 || work.batch == 0 || work.batch + work.signal_interval() > work.queue_depth() + 1) {
    throw std::invalid_argument("--batch " + std::to_string(work.batch) + " does not fit --depth " +
                                std::to_string(work.depth) +
                                ": at most three quarters of the depth may go in one post");
  }
  work.operations = (wanted_count + work.batch - 1) / work.batch * work.batch;
  works.push_back(work);
}

std::vector<Work> expand(const Lists& lists) {
  std::vector<Work> works;
  for (const std::string& operation_name : lists.operations) {
    const Operation operation = parse_operation(operation_name);
    for (const std::string& kind_name : lists.kinds) {
      const Kind kind = parse_kind(kind_name);
      const bool fixed_size = operation == Operation::fetch_add;
      if (fixed_size && kind == Kind::bandwidth) continue;  // a rate says it all
      const auto sizes = fixed_size ? std::vector<std::uint64_t>{8}
                                    : (lists.sizes.empty() ? default_sizes(kind) : lists.sizes);
      for (const std::uint64_t size : sizes) {
        if (kind == Kind::latency) {
          add_work(works, {operation, kind, size, 1, 1, 0}, lists.count);
          continue;
        }
        for (const std::uint32_t batch : lists.batches) {
          add_work(works, {operation, kind, size, lists.depth, batch, 0}, lists.count);
        }
      }
    }
  }
  return works;
}

}  // namespace

std::optional<Options> parse_options(const Program& program, int argument_count, char** arguments) {
  Options options;
  Lists lists;
  po::options_description description(
      std::string(program.purpose) +
      (program.over_weft ? "\nBoth sides run here, each a process of its own.\n\nOptions"
                         : "\nWithout --listen or --connect both sides run here, each a process of its own.\n"
                           "Both sides must be given the same work.\n\nOptions"));
  const std::vector<std::string> all_operations{"send", "write", "read", "write_with_immediate", "fetch_add"};
  const std::vector<std::string> all_kinds{"latency", "rate", "bandwidth"};
  description.add_options()("help,h", "this text");
  description.add_options()("device,d", po::value(&options.device), "RDMA device (default: the first)");
  description.add_options()("gid-index,x", po::value(&options.gid_index),
                            "GID index (default: RoCE v2 with an IPv4 address)");
  if (program.over_weft) {
    description.add_options()("threads", po::value(&options.threads)->default_value("safe"),
                              "thread mode: safe or single");
  } else {
    description.add_options()("listen", po::bool_switch(&options.listen), "be the target; print nothing");
    description.add_options()("connect", po::value(&options.connect), "be the initiator towards this host");
    description.add_options()("port,p", po::value(&options.port)->default_value(18520),
                              "port of the exchange");
  }
  description.add_options()("runs", po::value(&options.runs)->default_value(3), "runs behind each row");
  description.add_options()("operation",
                            po::value(&lists.operations)->multitoken()->default_value(all_operations, "all"),
                            "send, write, read, write_with_immediate, fetch_add");
  description.add_options()("kind", po::value(&lists.kinds)->multitoken()->default_value(all_kinds, "all"),
                            "latency, rate, bandwidth");
  description.add_options()("size,s", po::value(&lists.sizes)->multitoken(), "bytes (default: by kind)");
  description.add_options()("depth", po::value(&lists.depth)->default_value(128), "operations outstanding");
  description.add_options()("batch", po::value(&lists.batches)->multitoken()->default_value({1, 16}, "1 16"),
                            "requests per post call");
  description.add_options()("operations,n", po::value(&lists.count),
                            "operations per run (default: as many as --seconds take)");
  description.add_options()("seconds", po::value(&options.seconds)->default_value(0.3), "length of a run");
  description.add_options()("out", po::value(&options.output_file),
                            "file for the rows (default: standard output)");
  po::variables_map values;
  try {
    po::store(po::parse_command_line(argument_count, arguments, description), values);
    po::notify(values);
  } catch (const po::error& error) {
    throw std::invalid_argument(std::string(error.what()) + "; --help lists the options");
  }
  if (values.contains("help")) {
    std::cout << description;
    return std::nullopt;
  }
  if (options.listen && !options.connect.empty()) {
    throw std::invalid_argument("--listen and --connect exclude each other: each process is one side");
  }
  if (program.over_weft && options.threads != "safe" && options.threads != "single")
    throw std::invalid_argument("--threads " + options.threads + " is neither safe nor single");
  if (options.runs == 0) throw std::invalid_argument("--runs 0 measures nothing");
  options.works = expand(lists);
  return options;
}

}  // namespace weft::native
