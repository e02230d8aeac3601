// The command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "work.hpp"

namespace weft::native {

// The programs differ in what their links are made of.
struct Program {
  const char* name;
  const char* purpose;
  bool over_weft;
};

struct Options {
  std::string device;       // empty: the first
  int gid_index = -1;       // negative: chosen
  bool listen = false;      // be the target of a peer that connects
  std::string connect;      // be the initiator towards this host
  std::uint16_t port = 0;   // of the exchange between the two
  std::uint32_t runs = 0;   // runs of each piece of work
  double seconds = 0;       // length of a run where a piece of work does not say how many operations
  std::string output_file;  // empty: standard output
  std::string threads;      // weft's thread mode
  std::vector<Work> works;
};

// Throws std::invalid_argument, saying which value is wrong and why. Empty: only help was asked for, and
// given.
std::optional<Options> parse_options(const Program& program, int argument_count, char** arguments);

}  // namespace weft::native
