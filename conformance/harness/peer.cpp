#include "harness/peer.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/fork_server.hpp"
#include "harness/run.hpp"
#include "harness/test.hpp"

namespace conformance {
namespace {

// What the new process does: the arguments are the test and the address of the peer's function.
void run_in_process(Channel& control, const std::string& arguments) {
  const auto in = nlohmann::json::parse(arguments);
  Test test = Test::unpacked(in.at("test"));
  const auto body = reinterpret_cast<PeerBody>(in.at("body").get<std::uintptr_t>());
  run_as_process(Role::peer, test, [&] { body(test, control); });
  control.put(Channel::Kind::finished, Findings::here().take());
}

void run_in_thread(Test test, PeerBody body, Channel control) {
  pthread_setname_np(pthread_self(), "peer");
  run_noting_failures(Role::peer, [&] { body(test, control); });
  try {
    control.put(Channel::Kind::finished, {});
  } catch (const Abandoned&) {
  }
}

}  // namespace

Peer::Peer(const Test& test, PeerBody body, PeerKind kind) {
  if (kind == PeerKind::thread) {
    auto [mine, its] = Channel::make_pair();
    control_ = std::move(mine);
    thread_ = std::thread(run_in_thread, test, body, std::move(its));
    return;
  }
  const nlohmann::json arguments{{"test", test.packed()}, {"body", reinterpret_cast<std::uintptr_t>(body)}};
  Process process = start_process(run_in_process, arguments.dump(), getpgrp());
  process_ = process.id;
  control_ = std::move(process.control);
}

Peer::~Peer() {
  if (control_.descriptor() < 0 || !open_) return;
  if (process_ > 0) ::kill(process_, SIGCONT);
  const bool forgotten = std::uncaught_exceptions() == 0 && !killed_ && !Findings::here().failed();
  control_.end_of_talk();
  collect(5s);
  if (forgotten) Findings::here().add({__FILE__, __LINE__, "the test ended without waiting for its peer"});
}

void Peer::finish(Duration patience) {
  open_ = false;
  collect(patience);
}

void Peer::collect(Duration patience) {
  open_ = false;
  const auto finished = control_.ending(Channel::Kind::finished, patience);
  if (finished && !finished->empty()) Findings::here().merge(*finished, "in the peer: ");
  if (thread_.joinable()) {
    if (!finished) Findings::here().add({__FILE__, __LINE__, "the peer's function did not return in time"});
    thread_.join();
    return;
  }
  if (!finished && !killed_) {
    if (!control_.ending(Channel::Kind::exited, 100ms)) {
      Findings::here().add({__FILE__, __LINE__, "the peer process did not finish in time and was killed"});
      kill();
    }
  }
  const auto exited = control_.ending(Channel::Kind::exited, 10s);
  const std::string how = exited ? exit_in_words(*exited) : "did not exit";
  if (!how.empty() && !killed_) Findings::here().add({__FILE__, __LINE__, "the peer process " + how});
}

void Peer::kill() {
  if (process_ <= 0) throw std::logic_error("only a peer process can be killed");
  killed_ = true;
  ::kill(process_, SIGKILL);
}

void Peer::stop() {
  if (process_ <= 0) throw std::logic_error("only a peer process can be stopped");
  ::kill(process_, SIGSTOP);
}

void Peer::resume() {
  if (process_ > 0) ::kill(process_, SIGCONT);
}

}  // namespace conformance
