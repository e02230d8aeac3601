#include "worker.hpp"

#include <optional>
#include <stdexcept>

namespace perf {
namespace {

// The next number of operations, or nothing when all work is done.
std::optional<std::uint64_t> next_run(Channel& channel) {
  const Channel::Received received = channel.receive();
  if (received.kind == Message::leave) return std::nullopt;
  if (received.kind != Message::run) throw std::runtime_error("control channel: a run was expected");
  return unpack_number(received.payload);
}

}  // namespace

void serve_channel(Channel& channel, ServerRole& role) {
  channel.send(Message::address, role.address());
  if (channel.receive().kind != Message::connect)
    throw std::runtime_error("control channel: connect was expected");
  role.accept();
  channel.send(Message::ready);
  while (const auto operations = next_run(channel)) {
    role.serve(*operations);
    channel.send(Message::done);
  }
}

void run_channel(Channel& channel, ClientRole& role) {
  channel.send(Message::ready, role.fabric());
  while (const auto operations = next_run(channel)) channel.send(Message::done, pack(role.run(*operations)));
}

}  // namespace perf
