#include "retire.h"

#include <cuda.h>
#include <cudaTypedefs.h>

#include <map>
#include <mutex>
#include <vector>

#include "check.h"

namespace tropical::cuda {
namespace {

template <class Function>
Function entry(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result);
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(found) : nullptr;
}

// An event after all work of the current device, or the reason that there is none.
CUresult record_all(cudaEvent_t event) {
  static const auto current = entry<PFN_cuCtxGetCurrent_v4000>("cuCtxGetCurrent", 4000);
  static const auto record = entry<PFN_cuCtxRecordEvent_v12050>("cuCtxRecordEvent", 12050);
  if (!current || !record) return CUDA_ERROR_NOT_SUPPORTED;
  CUcontext context = nullptr;
  const CUresult got = current(&context);
  return got == CUDA_SUCCESS ? record(context, event) : got;
}

// What was retired on one device. A stream of our own, since those that used the memory may be gone.
struct Retired {
  cudaStream_t stream = nullptr;
  std::vector<void*> waiting;
};

}  // namespace

Event::Event() { TG_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)); }
Event::~Event() { (void)cudaEventDestroy(event); }

void retire(void* memory, int device) {
  static std::mutex mutex;
  static auto* const devices = new std::map<int, Retired>;  // never freed: the process may be ending
  const DeviceGuard guard(device);
  const std::lock_guard lock(mutex);
  Retired& retired = (*devices)[device];
  retired.waiting.push_back(memory);
  if (!retired.stream) TG_CUDA_CHECK(cudaStreamCreateWithFlags(&retired.stream, cudaStreamNonBlocking));
  const Event all;
  const CUresult recorded = record_all(all.event);
  // While a graph is captured there is no such event: the memory is freed with the next that is retired.
  if (recorded == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) return;
  if (recorded == CUDA_SUCCESS)
    TG_CUDA_CHECK(cudaStreamWaitEvent(retired.stream, all.event, 0));
  else
    TG_CUDA_CHECK(cudaDeviceSynchronize());  // drivers before CUDA 12.5
  while (!retired.waiting.empty()) {
    void* const each = retired.waiting.back();
    retired.waiting.pop_back();  // also where freeing fails: it must not be tried twice
    TG_CUDA_CHECK(cudaFreeAsync(each, retired.stream));
  }
}

}  // namespace tropical::cuda
