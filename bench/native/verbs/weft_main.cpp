// weft-same-work: the work of weft-native-verbs, done by the same loops through weft.
#include "program.hpp"
#include "weft_link.hpp"

int main(int argument_count, char** arguments) {
  return weft::native::main_of<weft::native::WeftLink>(
      {"weft-same-work", "The work of weft-native-verbs through weft's verbs provider, by the same loops.",
       true},
      argument_count, arguments);
}
