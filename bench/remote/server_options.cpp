#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <iostream>
#include <limits>

#include "options.hpp"

namespace perf::remote {
namespace {

namespace po = boost::program_options;

po::options_description options() {
  po::options_description description("Options");
  description.add_options()                                                              //
      ("help,h", "print this text")                                                      //
      ("once", "end after one client has been served")                                   //
      ("provider", po::value<std::string>()->value_name("NAME"), "as in WEFT_PROVIDER")  //
      ("device", po::value<std::string>()->value_name("NAME"), "as in WEFT_DEVICE")      //
      ("data-port", po::value<std::string>()->value_name("PORT")->default_value("0"),
       "where the connections that are measured come in, for firewalls; 0: any free port")  //
      ("memory", po::value<std::string>()->value_name("MiB")->default_value("1024"),
       "how much of it a client may make this side use")  //
      ("patience", po::value<std::string>()->value_name("SECONDS")->default_value("60"),
       "how long a row may take beyond the time its client named, or beyond an hour where that counts (-n)");
  return description;
}

}  // namespace

std::optional<ServerOptions> parse_server_options(const std::vector<std::string>& arguments) {
  const po::options_description visible = options();
  po::options_description all = visible;
  all.add_options()("address", po::value<std::string>()->default_value(std::string(":") + default_port));
  po::variables_map values;
  po::store(po::command_line_parser(arguments)
                .options(all)
                .positional(po::positional_options_description().add("address", 1))
                .run(),
            values);
  po::notify(values);
  if (values.count("help") != 0) {
    std::cout
        << "Usage: weft-perf server [[HOST]:PORT] [options]\n\n"
           "Waits for `weft-perf client` on another machine and does what that asks for; one client after\n"
           "the other, until it is stopped. Anybody who reaches the port may have it use processor time\n"
           "and memory, so stop it when you are done. Default: port "
        << default_port << " on all addresses.\n\n"
        << visible;
    return std::nullopt;
  }
  const auto text = [&](const char* name) {
    return values.count(name) != 0 ? values[name].as<std::string>() : "";
  };
  ServerOptions result;
  result.address = text("address");
  if (!has_port(result.address)) result.address += std::string(":") + default_port;
  result.provider = text("provider");
  result.device = text("device");
  result.once = values.count("once") != 0;
  result.data_port = static_cast<std::uint16_t>(
      parse_number(text("data-port"), "--data-port", 0, std::numeric_limits<std::uint16_t>::max()));
  constexpr std::uint64_t most_patience = 86'400;
  result.patience = std::chrono::seconds(parse_number(text("patience"), "--patience", 1, most_patience));
  result.memory_limit = parse_number(text("memory"), "--memory", 1, std::uint64_t{1} << 24) << 20;
  return result;
}

}  // namespace perf::remote
