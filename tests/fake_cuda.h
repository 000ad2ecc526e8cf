// What the fake CUDA library has seen; tests read it through dlsym or ctypes.
#pragma once
#include <cstdint>

namespace tropical::testing {

struct FakeLog {
  int64_t calls = 0;
  int64_t device = -1;
  void* stream = nullptr;
  void* workspace = nullptr;
  int64_t live = 0;  // allocations not released
  void* released_on = nullptr;
  void* ordered_first = nullptr;
  void* ordered_second = nullptr;
  int64_t retired = 0;
  bool release_fails = false;
  int64_t reported = 0;  // products that were to count what they filter
};

}  // namespace tropical::testing
