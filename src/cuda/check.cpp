#include "check.h"

#include <mutex>
#include <vector>

namespace tropical::cuda {
namespace {

std::string version(int number) { return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10); }

}  // namespace

void fail(cudaError_t error, const char* what) {
  (void)cudaGetLastError();  // the error is reported here; later calls start clean
  const std::string text = cudaGetErrorString(error);
  switch (error) {
    case cudaErrorMemoryAllocation:
      throw Failure{ErrorCode::out_of_memory, "the GPU is out of memory: " + text};
    case cudaErrorInsufficientDriver: {
      int driver = 0, runtime = 0;
      (void)cudaDriverGetVersion(&driver);
      (void)cudaRuntimeGetVersion(&runtime);
      if (driver == 0) throw Failure{ErrorCode::unsupported, "no NVIDIA driver was found"};
      throw Failure{ErrorCode::unsupported, "the NVIDIA driver is too old: it supports CUDA " + version(driver) +
                                                ", this build needs CUDA " + version(runtime) + " or later"};
    }
    case cudaErrorNoDevice:
      throw Failure{ErrorCode::unsupported, "no CUDA device was found"};
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      throw Failure{ErrorCode::unsupported, "this build has no code for this GPU: " + text +
                                                "; it was built for compute capabilities " TG_CUDA_ARCHITECTURES};
    default:
      throw Failure{ErrorCode::internal, "CUDA error: " + text + " (" + what + ")"};
  }
}

void check_device(int device) {
  // Asked once: the devices of a process do not change.
  static const int count = [] {
    int devices = 0;
    TG_CUDA_CHECK(cudaGetDeviceCount(&devices));
    return devices;
  }();
  if (device < 0 || device >= count)
    throw Failure{ErrorCode::invalid_value,
                  "there is no CUDA device " + std::to_string(device) + "; this machine has " + std::to_string(count)};
}

const DeviceFacts& device_facts(int device) {
  check_device(device);
  static std::mutex mutex;
  static std::vector<DeviceFacts*> known;  // never freed: references stay valid
  const std::lock_guard lock(mutex);
  const auto index = static_cast<size_t>(device);
  if (known.size() <= index) known.resize(index + 1);
  if (!known[index]) {
    DeviceFacts facts;
    int major = 0, minor = 0;
    TG_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    TG_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    TG_CUDA_CHECK(cudaDeviceGetAttribute(&facts.multiprocessors, cudaDevAttrMultiProcessorCount, device));
    TG_CUDA_CHECK(cudaDeviceGetAttribute(&facts.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    facts.compute = 10 * major + minor;
    cudaDeviceProp properties;
    TG_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    facts.memory = static_cast<int64_t>(properties.totalGlobalMem);
    known[index] = new DeviceFacts(facts);
  }
  return *known[index];
}

}  // namespace tropical::cuda
