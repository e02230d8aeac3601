#include "harness/print.hpp"

#include <ostream>
#include <sstream>

namespace weft {

void PrintTo(Status status, std::ostream* out) { *out << to_string(status); }
void PrintTo(Operation operation, std::ostream* out) { *out << to_string(operation); }

void PrintTo(Polled::Reason reason, std::ostream* out) {
  switch (reason) {
    case Polled::Reason::completions:
      *out << "completions";
      return;
    case Polled::Reason::empty:
      *out << "empty";
      return;
    case Polled::Reason::timeout:
      *out << "timeout";
      return;
    case Polled::Reason::woken:
      *out << "woken";
      return;
    case Polled::Reason::failed:
      *out << "failed";
      return;
  }
  *out << "reason " << static_cast<int>(reason);
}

void PrintTo(EndpointState state, std::ostream* out) {
  switch (state) {
    case EndpointState::connecting:
      *out << "connecting";
      return;
    case EndpointState::up:
      *out << "up";
      return;
    case EndpointState::closing:
      *out << "closing";
      return;
    case EndpointState::ended:
      *out << "ended";
      return;
  }
  *out << "state " << static_cast<int>(state);
}

void PrintTo(const Completion& completion, std::ostream* out) {
  *out << to_string(completion.operation) << ' ' << to_string(completion.status) << " context "
       << completion.context << " bytes " << completion.bytes << " endpoint " << completion.endpoint_id
       << " value " << completion.user_value;
  if (completion.has_immediate) *out << " immediate " << completion.immediate;
  if (completion.native_code != 0) *out << " native " << completion.native_code;
}

}  // namespace weft

namespace conformance {

std::string list(const std::vector<weft::Completion>& completions) {
  constexpr std::size_t shown = 12;
  if (completions.empty()) return "(none)";
  std::ostringstream out;
  for (std::size_t i = 0; i < completions.size() && i < shown; ++i) {
    out << "\n    ";
    PrintTo(completions[i], &out);
  }
  if (completions.size() > shown) out << "\n    … and " << completions.size() - shown << " more";
  return out.str();
}

}  // namespace conformance
