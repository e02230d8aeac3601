// weft-native-verbs: latency, rate and bandwidth of bare verbs, written as JSON rows.
#include "link.hpp"
#include "program.hpp"

int main(int argument_count, char** arguments) {
  return weft::native::main_of<weft::native::Link>(
      {"weft-native-verbs", "The best plain code on verbs for the work that weft is measured by.", false},
      argument_count, arguments);
}
