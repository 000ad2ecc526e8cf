// What programs that call the backend directly share: its library, a stream, and what went wrong.
#pragma once
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "cuda/backend.h"

namespace tropical::testing {

inline const cuda::Backend* backend = nullptr;
inline cudaStream_t stream = nullptr;
inline cuda::Queue queue;
inline int failures = 0;

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("CUDA: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}
inline void check(const cuda::Status& status, const char* what) {
  if (status.code == 0) return;
  std::printf("%s: %d %s\n", what, status.code, status.message);
  std::exit(2);
}

// Opens the library and a stream on the first device; ends the program where there is none, with 77: skipped.
inline cuda::DeviceInfo begin(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    std::printf("%s\n", dlerror());
    std::exit(2);
  }
  const auto entry = reinterpret_cast<cuda::GetBackend>(dlsym(handle, cuda::kEntrySymbol));
  backend = entry ? entry() : nullptr;
  if (!backend || backend->abi != cuda::kAbi) {
    std::printf("%s: not this build's CUDA library\n", library);
    std::exit(2);
  }
  cuda::Status status;
  const int devices = backend->device_count(&status);
  std::printf("devices: %d %s\n", devices, status.message);
  if (devices == 0) std::exit(77);
  cuda::DeviceInfo info;
  backend->device_info(0, &info, &status);
  check(status, "device");
  std::printf("%s, compute capability %d.%d, supported %d; built for %s\n", info.name, info.major, info.minor,
              info.supported, backend->architectures);
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  queue = {0, stream};
  return info;
}

// Runs `enqueue` at once, or captures it while the inputs hold something else and replays it with the real ones.
template <class Upload, class Scramble, class Enqueue>
void run(bool captured, Upload upload, Scramble scramble, Enqueue enqueue) {
  if (!captured) {
    upload();
    enqueue();
    return;
  }
  scramble();
  check(cudaStreamSynchronize(stream), "synchronize");
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  enqueue();
  check(cudaStreamEndCapture(stream, &graph), "end capture");
  check(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  check(cudaGraphLaunch(exec, stream), "launch graph");
  upload();
  check(cudaGraphLaunch(exec, stream), "launch graph");
  check(cudaStreamSynchronize(stream), "synchronize");
  check(cudaGraphExecDestroy(exec), "destroy");
  check(cudaGraphDestroy(graph), "destroy");
}

}  // namespace tropical::testing
