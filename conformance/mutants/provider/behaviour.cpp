#include "behaviour.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

namespace mutants {

bool Behaviour::strikes() noexcept {
  const std::uint64_t occasion = occasions_.fetch_add(1) + 1;
  if (occasion % one_in_ != 0) return false;
  if (const char* path = std::getenv("MUTANT_STRUCK_FILE")) {
    const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0) {
      (void)!::write(file, "x", 1);
      ::close(file);
    }
  }
  return true;
}

std::size_t Behaviour::poll(Queue& queue, Completion* out, std::size_t room) {
  return queue.inner().poll(out, room);
}
bool Behaviour::arm(Queue& queue) { return queue.inner().arm(); }
void Behaviour::readable(Queue& queue) { queue.forward_readable(); }
int Behaviour::descriptor(Queue& queue) { return queue.inner().descriptor(); }

PostResult Behaviour::post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) {
  return endpoint.inner().post(requests, count);
}
PostResult Behaviour::post_receives(Endpoint& endpoint, const ReceiveRequest* requests, std::size_t count) {
  return endpoint.inner().post_receives(requests, count);
}
weft::Limits Behaviour::limits(const Endpoint& /*endpoint*/, weft::Limits limits) { return limits; }
provider::Endpoint::Imported Behaviour::import_key(Endpoint& endpoint, std::span<const std::byte> key) {
  return endpoint.inner().import_key(key);
}
void Behaviour::go_up(Endpoint& endpoint) { endpoint.inner().go_up(); }
bool Behaviour::withdraw(Endpoint& endpoint) { return endpoint.inner().withdraw_connect_report(); }
void Behaviour::drain(Endpoint& endpoint) { endpoint.inner().drain(); }
void Behaviour::drained(Endpoint& endpoint, std::uint64_t messages) { endpoint.events().drained(messages); }
void Behaviour::end(Endpoint& endpoint, const provider::EndOrder& order) { endpoint.inner().end(order); }
void Behaviour::silence(Endpoint& endpoint) { endpoint.inner().silence(); }

PostResult Behaviour::post_shared(Receives& receives, const ReceiveRequest* requests, std::size_t count) {
  return receives.inner().post(requests, count);
}
void Behaviour::set_low_water(Receives& receives, std::uint32_t mark) {
  receives.inner().set_low_water(mark);
}
weft::AtomicScope Behaviour::atomic_scope(const Region& region) { return region.inner().atomic_scope(); }
void Behaviour::collect_users(Region& region, std::vector<std::uint32_t>& endpoint_ids) {
  region.inner().collect_users(endpoint_ids);
}
void Behaviour::cancel_shared_receives(Region& region) { region.inner().cancel_shared_receives(); }
Status Behaviour::deregister(Region& region) { return region.inner().deregister(); }
std::span<const std::byte> Behaviour::key(const Region& region) { return region.inner().key(); }

std::size_t Queue::poll(Completion* out, std::size_t room) noexcept {
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    for (; count < room && !injected_.empty(); ++count) {
      out[count] = injected_.front();
      injected_.pop_front();
    }
  }
  return count + behaviour_.poll(*this, out + count, room - count);
}

bool Queue::arm() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!injected_.empty()) return false;
  }
  return behaviour_.arm(*this);
}

void Queue::inject(const Completion& entry) {
  {
    const std::lock_guard lock(mutex_);
    injected_.push_back(entry);
  }
  forward_readable();
}

Completion Endpoint::completion_of(const WorkRequest& request) const {
  Completion entry;
  entry.context = request.context;
  entry.bytes = length_of(request);
  entry.user_value = user_value_;
  entry.endpoint_id = id();
  entry.operation = request.operation;
  return entry;
}

std::size_t OnEntry::poll(Queue& queue, Completion* out, std::size_t room) {
  const std::size_t found = queue.inner().poll(out, room);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < found; ++i) {
    Completion entry = out[i];
    const int times = edit_(*this, entry);
    if (times > 0) out[kept++] = entry;
    if (times > 1) queue.inject(entry);
  }
  return kept;
}

PostResult OnRequest::post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) {
  PostResult result;
  if (count == 0) return endpoint.inner().post(requests, count);
  for (; result.accepted < count; ++result.accepted) {
    WorkRequest request = requests[result.accepted];
    edit_(*this, endpoint, request);
    result.status = endpoint.inner().post(&request, 1).status;
    if (result.status != Status::ok) break;
  }
  return result;
}

PostResult OnPost::post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) {
  PostResult result;
  if (count == 0) return endpoint.inner().post(requests, count);
  for (; result.accepted < count; ++result.accepted) {
    const auto own = answer_(*this, endpoint, requests[result.accepted]);
    result.status = own ? *own : endpoint.inner().post(&requests[result.accepted], 1).status;
    if (result.status != Status::ok) break;
  }
  return result;
}

PostResult OnAnswer::post(Endpoint& endpoint, const WorkRequest* requests, std::size_t count) {
  PostResult result = endpoint.inner().post(requests, count);
  if (result.accepted < count) edit_(*this, endpoint, requests[result.accepted], result);
  return result;
}

}  // namespace mutants
