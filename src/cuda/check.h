// CUDA calls to failures, failures to the Status of the boundary; the current device is left as it was found.
#pragma once
#include <cuda_runtime.h>

#include <string>

#include "backend.h"
#include "tropical_gemm/error.h"

namespace tropical::cuda {

// Thrown inside this library only; every entry turns it into a Status.
struct Failure {
  ErrorCode code;
  std::string message;
};

[[noreturn]] void fail(cudaError_t error, const char* what);

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(error, what);
}
#define TG_CUDA_CHECK(call) ::tropical::cuda::check(call, #call)

// Throws for a device that the machine does not have.
void check_device(int device);

class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    check_device(device);
    TG_CUDA_CHECK(cudaGetDevice(&previous_));
    if (device == previous_) return;
    TG_CUDA_CHECK(cudaSetDevice(device));
    changed_ = true;
  }
  ~DeviceGuard() {
    if (changed_) (void)cudaSetDevice(previous_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_ = 0;
  bool changed_ = false;
};

// What launches need to know of a device; read once for each.
struct DeviceFacts {
  int compute = 0;  // 90 for capability 9.0
  int multiprocessors = 0;
  int shared_bytes = 0;  // the most a block may ask for
  int64_t memory = 0;    // bytes of all of it
};
const DeviceFacts& device_facts(int device);

}  // namespace tropical::cuda
