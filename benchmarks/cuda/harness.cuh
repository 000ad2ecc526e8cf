// What every measurement here needs: the library under test, a stream, memory, and device times.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cuda/backend.h"

namespace tropical::cuda {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}
inline void check(const Status& status) {
  if (status.code == 0) return;
  std::printf("%d %s\n", status.code, status.message);
  std::exit(2);
}

struct Context {
  const Backend* backend = nullptr;
  cudaStream_t stream = nullptr;
  Queue queue;
  int multiprocessors = 0;
  double clock_hz = 0;  // rated
};
inline Context context;

struct Memory {
  void* data = nullptr;
  explicit Memory(size_t bytes) { check(cudaMalloc(&data, bytes + 256), "malloc"); }
  ~Memory() { check(cudaFree(data), "free"); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
};

// Seconds of one call of f: the median over events, in a graph of 20 calls where they are short. Calls are queued while
// the one before still runs, so that no time of the host is in between.
template <class F>
double seconds_of(F f, bool graph, int repeats = 9) {
  cudaGraph_t g = nullptr;
  cudaGraphExec_t exec = nullptr;
  const int inner = graph ? 20 : 1;
  if (graph) {
    check(cudaStreamBeginCapture(context.stream, cudaStreamCaptureModeGlobal), "capture");
    for (int i = 0; i < inner; ++i) f();
    check(cudaStreamEndCapture(context.stream, &g), "capture");
    check(cudaGraphInstantiate(&exec, g, 0), "instantiate");
  }
  const auto once = [&] {
    if (graph)
      check(cudaGraphLaunch(exec, context.stream), "launch");
    else
      f();
  };
  once();
  check(cudaStreamSynchronize(context.stream), "synchronize");
  std::vector<cudaEvent_t> events(static_cast<size_t>(repeats) + 1);
  for (cudaEvent_t& event : events) {
    check(cudaEventCreate(&event), "event");
    once();  // the first of these is not timed
    check(cudaEventRecord(event, context.stream), "record");
  }
  check(cudaStreamSynchronize(context.stream), "synchronize");
  std::vector<double> times;
  for (size_t r = 0; r + 1 < events.size(); ++r) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, events[r], events[r + 1]), "elapsed");
    times.push_back(ms * 1e-3 / inner);
  }
  for (const cudaEvent_t event : events) check(cudaEventDestroy(event), "destroy");
  if (graph) {
    check(cudaGraphExecDestroy(exec), "destroy");
    check(cudaGraphDestroy(g), "destroy");
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Multiply-accumulates (one ⊗, one ⊕) per clock and multiprocessor.
inline double rate_of(double macs, double seconds) {
  return macs / seconds / context.multiprocessors / context.clock_hz;
}

}  // namespace tropical::cuda
