// weft-info: what of weft can run on this machine, why the rest cannot, and what to do about it.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <exception>
#include <iostream>

#include "reports.hpp"

namespace {

constexpr int nothing_runs = 1;
constexpr int wrong_usage = 2;

// Of the terminal, within reason; a file is read in one, too.
std::size_t line_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 100;
  return std::clamp<std::size_t>(size.ws_col, 60, 120);
}

int run(int argc, char** argv) {
  namespace po = boost::program_options;
  bool json = false;
  po::options_description description(
      "weft-info [options]: which providers, fabrics and devices weft can use here, why it cannot use the\n"
      "others and what to do about it; limits, trust, modes, and every environment variable.\n"
      "Exit status 0 when a program that leaves the choice to the environment would get a provider, else "
      "1.\n\n"
      "Options");
  auto add = description.add_options();
  add("help,h", "this text");
  add("version", "the version of the library");
  add("json", po::bool_switch(&json), "all findings as JSON, for programs");
  po::variables_map given;
  po::store(po::parse_command_line(argc, argv, description), given);
  po::notify(given);
  if (given.contains("help")) {
    std::cout << description << '\n';
    return 0;
  }
  if (given.contains("version")) {
    std::cout << "weft " << weft::version() << '\n';
    return 0;
  }
  const info::Findings findings = info::look_around();
  std::cout << (json ? info::json_report(findings) : info::text_report(findings, line_width()));
  return findings.choice.attributes ? 0 : nothing_runs;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "weft-info: " << error.what() << "; see --help\n";
    return wrong_usage;
  }
}
