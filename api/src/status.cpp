#include "weft/status.hpp"

#include "weft/work_request.hpp"

namespace weft {

// No default label: the compiler then names a value that was forgotten.
std::string_view to_string(Status status) noexcept {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::again:
      return "again";
    case Status::invalid_argument:
      return "invalid_argument";
    case Status::too_big:
      return "too_big";
    case Status::unsupported:
      return "unsupported";
    case Status::not_connected:
      return "not_connected";
    case Status::cancelled:
      return "cancelled";
    case Status::truncated:
      return "truncated";
    case Status::remote_access_error:
      return "remote_access_error";
    case Status::disconnected:
      return "disconnected";
    case Status::aborted:
      return "aborted";
    case Status::peer_lost:
      return "peer_lost";
    case Status::protocol:
      return "protocol";
    case Status::local_close:
      return "local_close";
    case Status::refused:
      return "refused";
    case Status::rejected:
      return "rejected";
    case Status::timed_out:
      return "timed_out";
    case Status::unreachable:
      return "unreachable";
    case Status::incompatible:
      return "incompatible";
    case Status::resource_limit:
      return "resource_limit";
    case Status::busy:
      return "busy";
    case Status::not_found:
      return "not_found";
    case Status::unavailable:
      return "unavailable";
    case Status::system_error:
      return "system_error";
  }
  return "unknown_status";
}

std::string_view to_string(Operation operation) noexcept {
  switch (operation) {
    case Operation::send:
      return "send";
    case Operation::write:
      return "write";
    case Operation::write_with_immediate:
      return "write_with_immediate";
    case Operation::read:
      return "read";
    case Operation::fetch_add:
      return "fetch_add";
    case Operation::compare_swap:
      return "compare_swap";
    case Operation::flush:
      return "flush";
    case Operation::receive:
      return "receive";
    case Operation::connect:
      return "connect";
    case Operation::connection_request:
      return "connection_request";
    case Operation::endpoint_ended:
      return "endpoint_ended";
    case Operation::low_water:
      return "low_water";
  }
  return "unknown_operation";
}

}  // namespace weft
