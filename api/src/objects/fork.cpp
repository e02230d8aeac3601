#include "objects/fork.hpp"

#include <pthread.h>

#include <mutex>
#include <set>

#include "bootstrap/descriptor.hpp"
#include "objects/context_core.hpp"

namespace weft::core {

namespace {

struct Registry {
  std::mutex mutex;
  std::set<ContextCore*> contexts;  // in a child also the parent's, which are inert already
};

Registry& registry() {
  static auto* const instance = new Registry;  // never destroyed: contexts may outlive static destructors
  return *instance;
}

// Both locks are leaves: nobody who holds them calls anything that forks or waits.
void before_fork() {
  registry().mutex.lock();
  DescriptorTable::instance().lock();
}

void in_parent() {
  DescriptorTable::instance().unlock();
  registry().mutex.unlock();
}

void in_child() {
  // The descriptors first: they are what hides the parent's death. Nothing here allocates or frees.
  DescriptorTable::instance().close_all_in_child();
  for (ContextCore* context : registry().contexts) context->enter_child();
  DescriptorTable::instance().unlock();
  registry().mutex.unlock();
}

}  // namespace

void register_for_fork(ContextCore& context) {
  static const int registered = ::pthread_atfork(before_fork, in_parent, in_child);
  if (registered != 0) throw Error(Status::resource_limit, "cannot register a fork handler: out of memory");
  const std::lock_guard guard(registry().mutex);
  registry().contexts.insert(&context);
}

void unregister_for_fork(ContextCore& context) noexcept {
  const std::lock_guard guard(registry().mutex);
  registry().contexts.erase(&context);
}

}  // namespace weft::core
