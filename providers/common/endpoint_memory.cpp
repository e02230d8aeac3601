#include "endpoint_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>

namespace weft::engine {

namespace {

// Address sanitizers watch each object by itself.
#ifdef WEFT_PLAIN_ENDPOINT_MEMORY
constexpr bool is_plain = true;
#else
constexpr bool is_plain = false;
#endif

constexpr std::size_t line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20;

struct Free {
  Free* next;
};

struct State {
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::byte* block = nullptr;
  std::byte* at = nullptr;  // free up to end
  std::byte* end = nullptr;
  std::byte* worth_huge = nullptr;          // huge pages when `at` comes here; null: they are
  std::map<std::size_t, Free*> given_back;  // by size; there are few sizes
};

// A forked child starts anew: a thread that it does not have may have held the mutex.
State& state() {
  static auto* current = new State;  // never destroyed: endpoints may outlive what is
  if (current->process != ::getpid()) current = new State;
  return *current;
}

// Address space for whole huge pages; memory only as it is used.
void begin_block(State& state, std::size_t bytes) {
  const std::size_t wanted = (bytes + huge_page - 1) / huge_page * huge_page;
  const std::size_t mapped = wanted + huge_page;
  void* const memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(memory);
  const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(begin) % huge_page) % huge_page;
  if (before != 0) ::munmap(begin, before);
  begin += before;
  const std::size_t behind = mapped - before - wanted;
  if (behind != 0) ::munmap(begin + wanted, behind);
  ::madvise(begin, wanted, MADV_NOHUGEPAGE);  // not with the first byte, where that is the system's habit
  state.block = begin;
  state.at = begin;
  state.end = begin + wanted;
  state.worth_huge = begin + wanted / 2;
}

// Small programs stay small, and of many endpoints' memory at most half of the last block is wasted.
void make_huge(State& state) noexcept {
  state.worth_huge = nullptr;
  const auto length = static_cast<std::size_t>(state.end - state.block);
  ::madvise(state.block, length, MADV_HUGEPAGE);  // only advice: small pages do as well
  constexpr int collapse = 25;  // MADV_COLLAPSE of Linux 6.1, which older C libraries do not name
  ::madvise(state.block, length, collapse);  // at once; where it is unknown, the system does it in a while
}

constexpr std::size_t in_lines(std::size_t bytes) { return (bytes + line - 1) / line * line; }

}  // namespace

void* EndpointMemory::take(std::size_t bytes) {
  if (is_plain) return ::operator new (bytes, std::align_val_t{line});
  bytes = std::max(in_lines(bytes), line);
  State& memory = state();
  const std::lock_guard lock(memory.mutex);
  Free*& given_back = memory.given_back[bytes];
  if (given_back != nullptr) {
    Free* const found = given_back;
    given_back = found->next;
    return found;
  }
  if (static_cast<std::size_t>(memory.end - memory.at) < bytes) begin_block(memory, bytes);
  std::byte* const taken = memory.at;
  memory.at += bytes;
  if (memory.worth_huge != nullptr && memory.at >= memory.worth_huge) make_huge(memory);
  return taken;
}

void EndpointMemory::give(void* memory, std::size_t bytes) noexcept {
  if (is_plain) {
    ::operator delete (memory, std::align_val_t{line});
    return;
  }
  if (memory == nullptr) return;
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto list = all.given_back.find(std::max(in_lines(bytes), line));
  if (list == all.given_back.end()) return;  // a child's, of its parent's: left alone
  list->second = new (memory) Free{list->second};
}

}  // namespace weft::engine
