// The entries of the boundary.
#include "backend.h"

#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>

#include "counting.h"
#include "product.h"
#include "retire.h"
#include "visit.h"

namespace tropical::cuda {
namespace {

void report(Status* status, ErrorCode code, const char* message) {
  if (!status) return;
  status->code = static_cast<int>(code);
  std::snprintf(status->message, sizeof status->message, "%s", message);
}

// Runs the body of an entry; whatever it throws becomes the status.
template <class Body>
auto guarded(Status* status, Body body) -> decltype(body()) {
  if (status) *status = {};
  try {
    return body();
  } catch (const Failure& failure) {
    report(status, failure.code, failure.message.c_str());
  } catch (const std::bad_alloc&) {
    report(status, ErrorCode::out_of_memory, "out of host memory");
  } catch (const std::exception& error) {
    report(status, ErrorCode::internal, error.what());
  } catch (...) {
    report(status, ErrorCode::internal, "unknown error");
  }
  return decltype(body())();
}

// "75 80 90a 120+ptx": whether one of these serves a device of this capability.
bool supports(int major, int minor) {
  const char* at = TG_CUDA_ARCHITECTURES;
  while (*at) {
    int number = 0;
    while (*at >= '0' && *at <= '9') number = 10 * number + (*at++ - '0');
    const bool exact = *at == 'a';
    bool ptx = false;
    while (*at && *at != ' ') ptx |= *at++ == '+';
    while (*at == ' ') ++at;
    const int wanted_major = number / 10, wanted_minor = number % 10;
    if (exact ? major == wanted_major && minor == wanted_minor : major == wanted_major && minor >= wanted_minor)
      return true;
    if (ptx && 10 * major + minor >= number) return true;
  }
  return false;
}

int device_count(Status* status) {
  return guarded(status, [] {
    int count = 0;
    TG_CUDA_CHECK(cudaGetDeviceCount(&count));
    return count;
  });
}

void device_info(int device, DeviceInfo* info, Status* status) {
  guarded(status, [&] {
    cudaDeviceProp properties;
    TG_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    *info = {};
    std::snprintf(info->name, sizeof info->name, "%s", properties.name);
    info->major = properties.major;
    info->minor = properties.minor;
    info->multiprocessors = properties.multiProcessorCount;
    info->memory = properties.totalGlobalMem;
    info->supported = supports(properties.major, properties.minor);
  });
}

const DeviceFacts& usable(int device) {
  const DeviceFacts& facts = device_facts(device);
  if (!supports(facts.compute / 10, facts.compute % 10))
    throw Failure{ErrorCode::unsupported, "this build has no code for GPU " + std::to_string(device) +
                                              " (compute capability " + std::to_string(facts.compute / 10) + "." +
                                              std::to_string(facts.compute % 10) +
                                              "); it was built for " TG_CUDA_ARCHITECTURES};
  return facts;
}

void run(const MatmulParams& p, Call& call) {
  visit(p.semiring, p.dtype, [&]<class S, class T>() { product<S, T>(p, call); });
}
void run(const BackwardParams& p, Call& call) {
  visit(p.semiring, p.dtype, [&]<class S, class T>() { gradient<S, T>(p, call); });
}

void run(const CountParams& p, Call& call) {
  visit_dtype(p.dtype, [&]<class T>() {
    if constexpr (counts_v<T>) count_product<T>(p, call);
  });
}
void run(const ViterbiParams& p, Call& call) {
  visit_dtype(p.dtype, [&]<class T>() {
    if constexpr (is_float_v<T>) viterbi<T>(p, call);
  });
}

void run(const AlignParams& p, Call& call) {
  visit_dtype(p.dtype, [&]<class T>() {
    if constexpr (is_float_v<T>) align<T>(p, call);
  });
}

template <class Params>
size_t workspace(const Params* params, int device, Status* status) {
  return guarded(status, [&] {
    Call call{{device, nullptr, &usable(device), true}, Scratch(nullptr)};
    run(*params, call);
    return call.scratch.used();
  });
}

template <class Params>
void enqueue(const Params* params, const Queue* queue, void* memory, Status* status) {
  guarded(status, [&] {
    const DeviceGuard guard(queue->device);
    Call call{{queue->device, static_cast<cudaStream_t>(queue->stream), &usable(queue->device), false},
              Scratch(memory)};
    run(*params, call);
  });
}

void permute_array(const PermuteParams* params, const Queue* queue, Status* status) {
  guarded(status, [&] {
    const DeviceGuard guard(queue->device);
    permute(*params, {queue->device, static_cast<cudaStream_t>(queue->stream), &usable(queue->device), false});
  });
}

void graph_step(const GraphParams* params, const Queue* queue, Status* status) {
  guarded(status, [&] {
    const DeviceGuard guard(queue->device);
    const Target target{queue->device, static_cast<cudaStream_t>(queue->stream), &usable(queue->device), false};
    visit_dtype(params->dtype, [&]<class T>() { closure_step<T>(*params, target); });
  });
}

void* allocate(size_t bytes, const Queue* queue, Status* status) {
  return guarded(status, [&] {
    const DeviceGuard guard(queue->device);
    void* memory = nullptr;
    if (bytes == 0) return memory;
    const cudaError_t error = cudaMallocAsync(&memory, bytes, static_cast<cudaStream_t>(queue->stream));
    if (error == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      throw Failure{ErrorCode::out_of_memory, "GPU " + std::to_string(queue->device) + " has no memory for another " +
                                                  std::to_string(bytes) + " bytes"};
    }
    check(error, "allocating memory");
    return memory;
  });
}

void release(void* memory, const Queue* queue, Status* status) {
  guarded(status, [&] {
    const DeviceGuard guard(queue->device);
    if (memory) TG_CUDA_CHECK(cudaFreeAsync(memory, static_cast<cudaStream_t>(queue->stream)));
  });
}

void order(const Queue* first, const Queue* second, Status* status) {
  guarded(status, [&] {
    if (first->device == second->device && first->stream == second->stream) return;
    const DeviceGuard guard(first->device);
    const Event event;
    TG_CUDA_CHECK(cudaEventRecord(event.event, static_cast<cudaStream_t>(first->stream)));
    const DeviceGuard other(second->device);
    TG_CUDA_CHECK(cudaStreamWaitEvent(static_cast<cudaStream_t>(second->stream), event.event, 0));
  });
}

void* mark(const Queue* queue, Status* status) {
  return guarded(status, [&]() -> void* {
    const DeviceGuard guard(queue->device);
    const auto stream = static_cast<cudaStream_t>(queue->stream);
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    TG_CUDA_CHECK(cudaStreamIsCapturing(stream, &capture));
    if (capture != cudaStreamCaptureStatusNone) return nullptr;
    auto event = std::make_unique<Event>();
    TG_CUDA_CHECK(cudaEventRecord(event->event, stream));
    return event.release();
  });
}

void wait(void* marked, const Queue* queue, Status* status) {
  guarded(status, [&] {
    const DeviceGuard guard(queue->device);
    TG_CUDA_CHECK(cudaStreamWaitEvent(static_cast<cudaStream_t>(queue->stream), static_cast<Event*>(marked)->event, 0));
  });
}

void unmark(void* marked) { delete static_cast<Event*>(marked); }

void retire_memory(void* memory, int device, Status* status) {
  guarded(status, [&] { retire(memory, device); });
}

void copy(void* to, const void* from, size_t bytes, const Queue* queue, Status* status) {
  guarded(status, [&] {
    const DeviceGuard guard(queue->device);
    if (bytes > 0)
      TG_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(queue->stream)));
  });
}

void when_done(void (*done)(void* context), void* context, const Queue* queue, Status* status) {
  guarded(status, [&] {
    const DeviceGuard guard(queue->device);
    const auto stream = static_cast<cudaStream_t>(queue->stream);
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    TG_CUDA_CHECK(cudaStreamIsCapturing(stream, &capture));
    if (capture != cudaStreamCaptureStatusNone)
      done(context);
    else
      TG_CUDA_CHECK(cudaLaunchHostFunc(stream, done, context));
  });
}

constexpr Backend kBackend = {kAbi,
                              TG_CUDA_ARCHITECTURES,
                              device_count,
                              device_info,
                              workspace<MatmulParams>,
                              enqueue<MatmulParams>,
                              workspace<BackwardParams>,
                              enqueue<BackwardParams>,
                              workspace<CountParams>,
                              enqueue<CountParams>,
                              workspace<ViterbiParams>,
                              enqueue<ViterbiParams>,
                              workspace<AlignParams>,
                              enqueue<AlignParams>,
                              allocate,
                              release,
                              order,
                              mark,
                              wait,
                              unmark,
                              retire_memory,
                              copy,
                              when_done,
                              permute_array,
                              graph_step};

}  // namespace
}  // namespace tropical::cuda

extern "C" __attribute__((visibility("default"))) const tropical::cuda::Backend* tropical_gemm_cuda_backend() {
  return &tropical::cuda::kBackend;
}
