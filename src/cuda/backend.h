// The boundary between libtropical_gemm.so and libtropical_gemm_cuda.so: one table of entries, plain structs, no
// exception. No CUDA header is needed to include it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "params.h"

namespace tropical::cuda {

// Bumped whenever this file or params.h changes, so that libraries of two builds are never mixed.
inline constexpr int kAbi = 8;
inline constexpr const char* kEntrySymbol = "tropical_gemm_cuda_backend";

// Where a call runs: the work is enqueued there and nowhere else, and the host never waits for it.
struct Queue {
  int device = 0;
  void* stream = nullptr;  // a cudaStream_t
};

// What went wrong; code 0 is success, others are the values of ErrorCode.
struct Status {
  int code = 0;
  char message[512] = {};
};

struct DeviceInfo {
  char name[256] = {};
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  uint64_t memory = 0;     // bytes
  bool supported = false;  // whether this build has code for it
};

struct Backend {
  int abi;
  const char* architectures;  // what this build has code for: "75 80 86 89 90a 100 120+ptx"

  // Devices that the driver offers; 0 with a message in status where there is no driver or it is too old.
  int (*device_count)(Status*);
  void (*device_info)(int device, DeviceInfo*, Status*);

  // Scratch memory in bytes (often 0), a pure function of the params and the device; the caller provides it, aligned
  // to 256 bytes, and may reuse it for later work of the same stream. `workspace` may be nullptr where 0 is needed.
  size_t (*matmul_workspace)(const MatmulParams*, int device, Status*);
  void (*matmul)(const MatmulParams*, const Queue*, void* workspace, Status*);
  size_t (*backward_workspace)(const BackwardParams*, int device, Status*);
  void (*matmul_backward)(const BackwardParams*, const Queue*, void* workspace, Status*);
  // Integers synchronise: whether they have overflowed is the status.
  size_t (*count_workspace)(const CountParams*, int device, Status*);
  void (*count_matmul)(const CountParams*, const Queue*, void* workspace, Status*);
  size_t (*viterbi_workspace)(const ViterbiParams*, int device, Status*);
  void (*viterbi)(const ViterbiParams*, const Queue*, void* workspace, Status*);
  size_t (*align_workspace)(const AlignParams*, int device, Status*);
  void (*align)(const AlignParams*, const Queue*, void* workspace, Status*);

  // Stream-ordered memory of the device, for callers that bring no allocator, and ordering between streams.
  void* (*allocate)(size_t bytes, const Queue*, Status*);
  void (*release)(void*, const Queue*, Status*);
  // Work enqueued on `second` from now on runs after what is on `first` now.
  void (*order)(const Queue* first, const Queue* second, Status*);
  // The same in two steps, for a stream that may be gone by then: marks what is on the queue now, and makes work
  // enqueued from now on run after a mark. nullptr where the stream is being captured.
  void* (*mark)(const Queue*, Status*);
  void (*wait)(void* mark, const Queue*, Status*);
  void (*unmark)(void* mark);
  // Releases memory once all that the device has been given by now is done, on whichever stream. While a graph is being
  // captured on the device, this fails that capture.
  void (*retire)(void* memory, int device, Status*);

  // Copies from the host to the device or back, in the order of the stream. The host's memory is pageable, and the call
  // returns when it may be used again.
  void (*copy)(void* to, const void* from, size_t bytes, const Queue*, Status*);
  // Calls done(context) once what is on the queue now has finished, from a thread of the driver: `done` must neither
  // wait nor call CUDA. While the stream is being captured it is called at once, since a graph may run many times.
  void (*when_done)(void (*done)(void* context), void* context, const Queue*, Status*);

  // Neither of these needs a workspace.
  void (*permute)(const PermuteParams*, const Queue*, Status*);
  // One step of a closure.
  void (*graph_step)(const GraphParams*, const Queue*, Status*);
};

// The one exported symbol, extern "C" under the name kEntrySymbol.
using GetBackend = const Backend* (*)();

}  // namespace tropical::cuda
