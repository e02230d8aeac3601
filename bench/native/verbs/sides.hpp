// The two sides of every measurement, in step over the exchange.
#pragma once

#include "exchange.hpp"
#include "options.hpp"
#include "verbs_objects.hpp"

namespace weft::native {

// Starts the operations, measures, and writes the rows.
void be_initiator(Device& device, Exchange& exchange, const Options& options);
// Answers, and checks that the data arrived.
void be_target(Device& device, Exchange& exchange, const Options& options);

}  // namespace weft::native
