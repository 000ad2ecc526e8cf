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

}  // namespace tropical::testing
