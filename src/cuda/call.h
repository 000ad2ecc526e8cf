// What a call to this library carries along on the host.
#pragma once
#include <algorithm>

#include "args.h"

namespace tropical::cuda {

// Where a call runs, resolved. A dry run launches nothing: it finds out how much scratch memory a call takes.
struct Target {
  int device;
  cudaStream_t stream;
  const DeviceFacts* facts;
  bool dry;
};

// The caller's scratch memory in pieces; in a dry run it only counts.
class Scratch {
 public:
  explicit Scratch(void* memory) : memory_(memory ? static_cast<char*>(memory) : reinterpret_cast<char*>(256)) {}
  template <class T>
  T* take(int64_t count) {
    const size_t at = used_;
    used_ += (static_cast<size_t>(count) * sizeof(T) + 255) / 256 * 256;
    return reinterpret_cast<T*>(memory_ + at);
  }
  size_t used() const { return used_; }
  // As if pieces had been taken up to there, which copies of this object have done.
  void reach(size_t used) { used_ = std::max(used_, used); }

 private:
  char* memory_;
  size_t used_ = 0;
};

struct Call {
  Target target;
  Scratch scratch;
  const int* done = nullptr;  // on the device: where nonzero, the product is complete and kernels have nothing to do
};

}  // namespace tropical::cuda
