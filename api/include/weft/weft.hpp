// The whole public API.
#pragma once

#include "weft/attributes.hpp"
#include "weft/completion.hpp"
#include "weft/completion_queue.hpp"
#include "weft/context.hpp"
#include "weft/discovery.hpp"
#include "weft/endpoint.hpp"
#include "weft/flags.hpp"
#include "weft/listener.hpp"
#include "weft/log.hpp"
#include "weft/memory_region.hpp"
#include "weft/receive_queue.hpp"
#include "weft/status.hpp"
#include "weft/version.hpp"
#include "weft/work_request.hpp"
