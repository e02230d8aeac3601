#include "process_pair.hpp"

#include <exception>
#include <stdexcept>

#include "forked_process.hpp"
#include "worker.hpp"

namespace perf {

ProcessPair::ProcessPair(const Contender& contender, const Workload& workload, const Cores& cores)
    : name_(contender.name) {
  server_ = std::make_unique<ForkedProcess>("server", cores.server, [&](Channel& channel) {
    const auto role = contender.make_server(workload);
    serve_channel(channel, *role);
  });
  const std::string address = server_->expect(Message::address);
  client_ = std::make_unique<ForkedProcess>("client", cores.client, [&](Channel& channel) {
    const std::string server_address = channel.receive().payload;
    const auto role = contender.make_client(workload, server_address);
    run_channel(channel, *role);
  });
  server_->send(Message::connect);
  client_->send(Message::connect, address);
  try {
    fabric_ = client_->expect(Message::ready);
    (void)server_->expect(Message::ready);
  } catch (const std::exception& error) {
    throw std::runtime_error(error.what() + server_->give_up());
  }
}

ProcessPair::~ProcessPair() {
  client_.reset();
  server_.reset();
}

Slice ProcessPair::run(std::uint64_t operations) {
  server_->send(Message::run, pack(operations));
  client_->send(Message::run, pack(operations));
  Slice slice;
  try {
    slice = unpack_slice(client_->expect(Message::done));
  } catch (const std::exception& error) {
    throw std::runtime_error(error.what() + server_->give_up());
  }
  try {
    (void)server_->expect(Message::done);
  } catch (const std::exception& error) {
    throw std::runtime_error(error.what() + client_->give_up());
  }
  return slice;
}

}  // namespace perf
