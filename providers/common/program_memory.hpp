// Tells the thread sanitizer not to judge an access to the program's memory that the peer asked for. The
// order between it and the program's own accesses is made by the connection (the peer says over a channel of
// its own that it is done), which the sanitizer cannot see. Does nothing in other builds.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define WEFT_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_THREAD_SANITIZER 1
#endif
#endif

#ifdef WEFT_THREAD_SANITIZER
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);   // NOLINT(readability-identifier-naming)
void AnnotateIgnoreReadsEnd(const char* file, int line);     // NOLINT(readability-identifier-naming)
void AnnotateIgnoreWritesBegin(const char* file, int line);  // NOLINT(readability-identifier-naming)
void AnnotateIgnoreWritesEnd(const char* file, int line);    // NOLINT(readability-identifier-naming)
}
#endif

namespace weft::engine {

class ProgramMemoryAccess {
 public:
#ifdef WEFT_THREAD_SANITIZER
  ProgramMemoryAccess() noexcept {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~ProgramMemoryAccess() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  // Not defaulted, so that a variable of it counts as used.
  // NOLINTNEXTLINE(modernize-use-equals-default)
  ProgramMemoryAccess() noexcept {}
  // NOLINTNEXTLINE(modernize-use-equals-default)
  ~ProgramMemoryAccess() {}
#endif
  ProgramMemoryAccess(const ProgramMemoryAccess&) = delete;
  ProgramMemoryAccess& operator=(const ProgramMemoryAccess&) = delete;
};

}  // namespace weft::engine
