// CUDA devices without CUDA headers: what there is, where a call runs, and stream-ordered memory.
// The backend lives in libtropical_gemm_cuda.so, which is opened when it is first asked for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tropical_gemm/export.h"

namespace tropical {

// Where a call on tensors of a CUDA device runs. The work is enqueued on `stream` and nowhere else; the host does not
// wait for it, and the call may be captured in a CUDA graph. `threads` and `cancel` have no meaning there.
struct CudaOptions {
  // A cudaStream_t of the tensors' device; nullptr is the legacy default stream.
  void* stream = nullptr;
  // Scratch memory: called at most once, with the number of bytes; returns memory of the tensors' device, aligned to
  // 256 bytes, that later work of the same stream may reuse. Without it the library takes memory from the device's
  // stream-ordered pool.
  void* (*allocate)(void* context, size_t bytes) = nullptr;
  void* context = nullptr;
};

struct CudaDevice {
  std::string name;
  int major, minor;  // compute capability
  int multiprocessors;
  uint64_t memory;  // bytes
  bool supported;   // whether this build has code for it
};

struct CudaInfo {
  bool built;                 // the backend is there and could be opened
  std::string architectures;  // those it has code for
  std::vector<CudaDevice> devices;
  std::string problem;  // why there is no backend or no device; "" if there is one
};
TROPICAL_API CudaInfo cuda_info();

// Stream-ordered memory of a device, for callers that bring no allocator. Throws Error.
TROPICAL_API void* cuda_allocate(size_t bytes, int device, void* stream);
TROPICAL_API void cuda_release(void* memory, int device, void* stream);
// Work enqueued on `second` from now on runs after what is on `first` now.
TROPICAL_API void cuda_order(int device, void* first, void* second);
// The same in two steps, for a stream that may be gone by then: a mark stands for what is on the stream now, and work
// enqueued after cuda_wait runs after it. nullptr where the stream is being captured.
TROPICAL_API void* cuda_mark(int device, void* stream);
TROPICAL_API void cuda_wait(void* mark, int device, void* stream);
TROPICAL_API void cuda_unmark(void* mark);
// Releases memory once all that the device has been given by now is done, on whichever stream. While a graph is being
// captured on that device, this fails the capture.
TROPICAL_API void cuda_retire(void* memory, int device);
// Copies between the host's pageable memory and the device; returns when the host's may be used again.
TROPICAL_API void cuda_copy(void* to, const void* from, size_t bytes, int device, void* stream);
// Calls done(context), from a thread of the driver, once what is on the stream now has finished; `done` must neither
// wait nor call CUDA. While the stream is being captured it is called at once.
TROPICAL_API void cuda_when_done(void (*done)(void*), void* context, int device, void* stream);

}  // namespace tropical
