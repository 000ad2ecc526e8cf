// Scratch memory on a device for one call.
#pragma once
#include <string>

#include "cuda/loader.h"
#include "tropical_gemm/cuda.h"
#include "tropical_gemm/error.h"

namespace tropical {

// From the caller's allocator, or of its own from the device's stream-ordered pool.
class Scratch {
 public:
  Scratch(size_t bytes, const CudaOptions& options, const cuda::Queue& queue) : queue_(queue) {
    if (bytes == 0) return;
    if (options.allocate) {
      memory_ = options.allocate(options.context, bytes);
      if (!memory_)
        throw Error(ErrorCode::out_of_memory,
                    "the caller's allocator gave no workspace of " + std::to_string(bytes) + " bytes");
    } else {
      memory_ = cuda::call(cuda::backend().allocate, bytes, &queue_);
      owned_ = true;
    }
  }
  ~Scratch() {
    cuda::Status ignored;  // a failure shows in the next call on the stream
    if (owned_) cuda::backend().release(memory_, &queue_, &ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* memory() const { return memory_; }

 private:
  cuda::Queue queue_;
  void* memory_ = nullptr;
  bool owned_ = false;
};

}  // namespace tropical
