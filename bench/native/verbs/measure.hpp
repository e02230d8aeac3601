// The two loops of each kind of measurement: the side that starts operations and the side they go to.
#pragma once

#include "link.hpp"
#include "work.hpp"

namespace weft::native {

// Half a round trip for operations both sides take part in (as perftest counts), the whole of it for the
// others.
Measured initiate_latency(Link& link, const Work& work);
void answer_latency(Link& link, const Work& work);

// From the first post to the last completion of `work.operations` operations.
Measured initiate_throughput(Link& link, const Work& work);
void answer_throughput(Link& link, const Work& work);

}  // namespace weft::native
