// Subnormal numbers are numbers here, also for callers that flush them to zero: XLA's threads do, and programs that set
// that mode or load a library built with fast-math.
#pragma once
#if defined(__SSE__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace tropical {

// IEEE 754's default mode of this thread, until destroyed.
class StandardFloats {
 public:
  StandardFloats(const StandardFloats&) = delete;
  StandardFloats& operator=(const StandardFloats&) = delete;

#if defined(__SSE__)
  StandardFloats() {
    if (changes()) _mm_setcsr(kDefault);
  }
  ~StandardFloats() {
    if (changes()) _mm_setcsr(before_);
  }

 private:
  static constexpr unsigned kFlags = 0x3f, kDefault = 0x1f80;
  bool changes() const { return (before_ & ~kFlags) != kDefault; }

  const unsigned before_ = _mm_getcsr();
#else
  StandardFloats() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~StandardFloats() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
#endif
};

}  // namespace tropical
