#include "resolver.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <mutex>
#include <utility>

#include "text.hpp"
#include "thread.hpp"

namespace weft::core {
namespace {

struct Question {
  HostPort target;
  std::weak_ptr<void> asker;
  std::function<void(Resolution)> answer;
};

struct Pool {
  std::mutex mutex;
  std::deque<Question> waiting;
  unsigned threads = 0;
  Pool* parents = nullptr;  // in a forked child: kept only so that a leak checker finds it
};

// Never destroyed: a look-up may still run while the process exits. A forked child gets a new one, since the
// parent's threads do not exist there and its lock may be held by one of them.
Pool* the_pool = nullptr;

Pool& pool() {
  static const bool made = [] {
    the_pool = new Pool;
    ::pthread_atfork(nullptr, nullptr, [] {
      Pool* const fresh = new Pool;
      fresh->parents = the_pool;
      the_pool = fresh;
    });
    return true;
  }();
  (void)made;
  return *the_pool;
}

std::string failure_text(const HostPort& target, int code, int error_number) {
  const std::string why = code == EAI_SYSTEM ? system_text(error_number) : ::gai_strerror(code);
  std::string_view advice = "check the name, or give a numeric address";
  if (code == EAI_AGAIN) advice = "the name server did not answer: try again, or give a numeric address";
  return fmt::format("cannot look up the host {}: {}; {}", quoted(target.host), why, advice);
}

// The preferred family first, then by turns, each family in its own order: when one family does not work, the
// next try is of the other.
std::vector<SocketAddress> interleaved(const std::vector<SocketAddress>& sorted) {
  std::vector<SocketAddress> preferred;
  std::vector<SocketAddress> others;
  for (const SocketAddress& address : sorted) {
    (address.family() == sorted.front().family() ? preferred : others).push_back(address);
  }
  std::vector<SocketAddress> result;
  for (std::size_t i = 0; i < std::max(preferred.size(), others.size()); ++i) {
    if (i < preferred.size()) result.push_back(preferred[i]);
    if (i < others.size()) result.push_back(others[i]);
  }
  return result;
}

Resolution look_up(const HostPort& target) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const int code = ::getaddrinfo(target.host.c_str(), nullptr, &hints, &raw);
  const int error_number = errno;
  if (code != 0) {
    const Status status = code == EAI_MEMORY ? Status::resource_limit : Status::unreachable;
    return {status, {}, failure_text(target, code, error_number)};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(raw, &::freeaddrinfo);
  std::vector<SocketAddress> found;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    auto address = SocketAddress::from_sockaddr(entry->ai_addr, entry->ai_addrlen);
    if (!address) continue;
    address->set_port(target.port);
    if (std::find(found.begin(), found.end(), *address) == found.end()) found.push_back(*address);
  }
  if (found.empty()) return {Status::unreachable, {}, failure_text(target, EAI_NONAME, 0)};
  return {Status::ok, interleaved(found), {}};
}

Resolution look_up_safely(const HostPort& target) noexcept {
  try {
    return look_up(target);
  } catch (...) {
    return {Status::resource_limit, {}, "out of memory"};
  }
}

void answer(Question& question, Resolution resolution) noexcept {
  const std::shared_ptr<void> asker = question.asker.lock();
  if (asker) question.answer(std::move(resolution));
}

// What a look-up thread does: questions until there are none.
void serve(Pool& pool) noexcept {
  while (true) {
    Question question;
    {
      const std::lock_guard lock(pool.mutex);
      if (pool.waiting.empty()) {
        --pool.threads;
        return;
      }
      question = std::move(pool.waiting.front());
      pool.waiting.pop_front();
    }
    if (!question.asker.expired()) answer(question, look_up_safely(question.target));
  }
}

}  // namespace

std::optional<SocketAddress> numeric_address(const HostPort& target) {
  return SocketAddress::from_numeric(target.host, target.port);
}

void resolve(const HostPort& target, std::weak_ptr<void> asker, std::function<void(Resolution)> on_answer) {
  Question question{target, std::move(asker), std::move(on_answer)};
  if (target.host.empty()) {
    answer(question, {Status::unreachable,
                      {},
                      fmt::format("the address {} names no host to look up", quoted(target.to_string()))});
    return;
  }
  if (const auto numeric = numeric_address(target)) {
    answer(question, {Status::ok, {*numeric}, {}});
    return;
  }
  Pool& shared = pool();
  {
    const std::lock_guard lock(shared.mutex);
    if (shared.threads == resolver_threads) {
      shared.waiting.push_back(std::move(question));
      return;
    }
    ++shared.threads;
  }
  // A thread of its own, rather than through the queue: were none to start, the question is still here.
  const auto held = std::make_shared<Question>(std::move(question));
  try {
    start_thread("weft-resolver", [&shared, question = std::shared_ptr<Question>(held)]() mutable {
      answer(*question, look_up_safely(question->target));
      question.reset();  // what the answer held goes before others are served
      serve(shared);
    }).detach();
  } catch (const Error& error) {
    std::deque<Question> stranded;
    {
      const std::lock_guard lock(shared.mutex);
      --shared.threads;
      if (shared.threads == 0) stranded.swap(shared.waiting);  // nobody is left to serve them
    }
    stranded.push_front(std::move(*held));
    for (Question& one : stranded) answer(one, {error.code(), {}, error.what()});
  }
}

}  // namespace weft::core
