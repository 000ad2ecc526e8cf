// A CUDA library without a GPU: "device" memory is the host's, and the CPU backend computes. It lets tests of the host
// side see what reaches the backend. Point TROPICAL_GEMM_CUDA_LIBRARY to it.
#include "fake_cuda.h"

#include <cstdlib>
#include <cstring>

#include "cpu/backend.h"
#include "cuda/backend.h"
#include "tropical_gemm/error.h"

namespace tropical::testing {
namespace {

constexpr size_t kWorkspace = 512;  // what it asks of every call, to see it arrive
FakeLog log;

void fail(cuda::Status* status, ErrorCode code, const char* message) {
  status->code = static_cast<int>(code);
  std::strncpy(status->message, message, sizeof status->message - 1);
}

template <class Params>
size_t workspace(const Params*, int, cuda::Status*) {
  return kWorkspace;
}

template <class Params>
void run(const Params* params, const cuda::Queue* queue, void* scratch, cuda::Status* status) {
  log.device = queue->device, log.stream = queue->stream, log.workspace = scratch;
  ++log.calls;
  std::memset(scratch, 0xEE, kWorkspace);
  if constexpr (std::is_same_v<Params, MatmulParams>) {
    if (params->k == 777) return fail(status, ErrorCode::unsupported, "the fake refuses K = 777");
    cpu::matmul(*params);
    // As a filter that leaves one output unproven.
    if (FilterCounts* counts = params->filter_counts) {
      ++log.reported;
      counts->filtered += params->m * params->n;
      counts->unproven += 1;
    }
  } else if constexpr (std::is_same_v<Params, BackwardParams>) {
    cpu::matmul_backward(*params);
  } else if constexpr (std::is_same_v<Params, CountParams>) {
    cpu::count_matmul(*params);
  } else if constexpr (std::is_same_v<Params, ViterbiParams>) {
    cpu::viterbi(*params);
  } else {
    cpu::align(*params);
  }
}

constexpr cuda::Backend kBackend{
    .abi = cuda::kAbi,
    .architectures = "fake",
    .device_count = [](cuda::Status*) { return 2; },
    .device_info =
        [](int device, cuda::DeviceInfo* info, cuda::Status*) {
          std::strncpy(info->name, "fake", sizeof info->name);
          info->major = 9, info->minor = device, info->multiprocessors = 1, info->memory = 1 << 20;
          info->supported = device == 0;
        },
    .matmul_workspace = workspace<MatmulParams>,
    .matmul = run<MatmulParams>,
    .backward_workspace = workspace<BackwardParams>,
    .matmul_backward = run<BackwardParams>,
    .count_workspace = workspace<CountParams>,
    .count_matmul = run<CountParams>,
    .viterbi_workspace = workspace<ViterbiParams>,
    .viterbi = run<ViterbiParams>,
    .align_workspace = workspace<AlignParams>,
    .align = run<AlignParams>,
    .allocate =
        [](size_t bytes, const cuda::Queue*, cuda::Status*) {
          ++log.live;
          return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
        },
    .release =
        [](void* memory, const cuda::Queue* queue, cuda::Status* status) {
          if (log.release_fails) fail(status, ErrorCode::internal, "the fake fails to release");
          --log.live;
          log.released_on = queue->stream;
          std::free(memory);
        },
    .order = [](const cuda::Queue* first, const cuda::Queue* second,
                cuda::Status*) { log.ordered_first = first->stream, log.ordered_second = second->stream; },
    .mark = [](const cuda::Queue* queue, cuda::Status*) -> void* { return new void*(queue->stream); },
    .wait = [](void* mark, const cuda::Queue* queue,
               cuda::Status*) { log.ordered_first = *static_cast<void**>(mark), log.ordered_second = queue->stream; },
    .unmark = [](void* mark) { delete static_cast<void**>(mark); },
    .retire =
        [](void* memory, int, cuda::Status*) {
          --log.live;
          ++log.retired;
          std::free(memory);
        },
    .copy = [](void* to, const void* from, size_t bytes, const cuda::Queue*,
               cuda::Status*) { std::memcpy(to, from, bytes); },
    .when_done = [](void (*done)(void*), void* context, const cuda::Queue*, cuda::Status*) { done(context); },
    .permute =
        [](const PermuteParams* params, const cuda::Queue* queue, cuda::Status*) {
          log.device = queue->device, log.stream = queue->stream;
          cpu::permute(*params);
        },
    .graph_step =
        [](const GraphParams* params, const cuda::Queue* queue, cuda::Status*) {
          log.device = queue->device, log.stream = queue->stream;
          cpu::graph_step(*params);
        },
};

}  // namespace
}  // namespace tropical::testing

extern "C" {
__attribute__((visibility("default"))) const tropical::cuda::Backend* tropical_gemm_cuda_backend() {
  return &tropical::testing::kBackend;
}
__attribute__((visibility("default"))) tropical::testing::FakeLog* tropical_gemm_fake_log() {
  return &tropical::testing::log;
}
}
