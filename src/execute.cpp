#include "execute.h"

#include "cpu/backend.h"
#include "cuda/loader.h"
#include "filter.h"
#include "float_mode.h"
#include "rearrange.h"
#include "scratch.h"
#include "tensor.h"

namespace tropical {
namespace {

template <class Params>
void on_cpu(void (*run)(const Params&), const Params& params) {
  const StandardFloats standard;
  run(params);
}

template <class Params>
void on_device(const Params& params, int device, const CudaOptions& options,
               size_t (*workspace)(const Params*, int, cuda::Status*),
               void (*run)(const Params*, const cuda::Queue*, void*, cuda::Status*)) {
  const cuda::Queue queue{device, options.stream};
  const Scratch scratch(cuda::call(workspace, &params, device), options, queue);
  cuda::call(run, &params, &queue, scratch.memory());
}

void matmul_on_device(const MatmulParams& params, int device, const CudaOptions& options) {
  const cuda::Backend& gpu = cuda::backend();
  on_device(params, device, options, gpu.matmul_workspace, gpu.matmul);
}

// With a look at what the filter did, for which the host waits. The caller's allocator is asked once, for the
// workspace.
FilterReport recorded(MatmulParams params, int device, const CudaOptions& options) {
  FilterCounts counts;
  const Scratch there(sizeof counts, {}, {device, options.stream});
  cuda_copy(there.memory(), &counts, sizeof counts, device, options.stream);
  params.filter_counts = static_cast<FilterCounts*>(there.memory());
  matmul_on_device(params, device, options);
  cuda_copy(&counts, there.memory(), sizeof counts, device, options.stream);
  return {params.m * params.n * params.batch.count(), counts.filtered, counts.unproven};
}

}  // namespace

void execute(MatmulParams params, const DLTensor& a, const CudaOptions& options) {
  fold(params);
  if (!on_cuda(a)) return on_cpu(cpu::matmul, params);
  filter_report() = {};
  if (filter_recorded())
    filter_report() = recorded(params, a.device.device_id, options);
  else
    matmul_on_device(params, a.device.device_id, options);
}

void execute(BackwardParams params, const DLTensor& a, const CudaOptions& options) {
  fold(params);
  if (!on_cuda(a)) return on_cpu(cpu::matmul_backward, params);
  const cuda::Backend& gpu = cuda::backend();
  on_device(params, a.device.device_id, options, gpu.backward_workspace, gpu.matmul_backward);
}

void execute(const CountParams& params, const DLTensor& a, const CudaOptions& options) {
  if (!on_cuda(a)) return on_cpu(cpu::count_matmul, params);
  const cuda::Backend& gpu = cuda::backend();
  on_device(params, a.device.device_id, options, gpu.count_workspace, gpu.count_matmul);
}

void execute(const ViterbiParams& params, const DLTensor& emission, const CudaOptions& options) {
  if (!on_cuda(emission)) return on_cpu(cpu::viterbi, params);
  const cuda::Backend& gpu = cuda::backend();
  on_device(params, emission.device.device_id, options, gpu.viterbi_workspace, gpu.viterbi);
}

void execute(const AlignParams& params, const DLTensor& log_probs, const CudaOptions& options) {
  if (!on_cuda(log_probs)) return on_cpu(cpu::align, params);
  const cuda::Backend& gpu = cuda::backend();
  on_device(params, log_probs.device.device_id, options, gpu.align_workspace, gpu.align);
}

void execute(const PermuteParams& params, const DLTensor& x, const CudaOptions& options) {
  if (!on_cuda(x)) return cpu::permute(params);
  const cuda::Queue queue{x.device.device_id, options.stream};
  cuda::call(cuda::backend().permute, &params, &queue);
}

void execute(const GraphParams& params, const DLTensor& a, const CudaOptions& options) {
  if (!on_cuda(a)) return on_cpu(cpu::graph_step, params);
  const cuda::Queue queue{a.device.device_id, options.stream};
  cuda::call(cuda::backend().graph_step, &params, &queue);
}

size_t scratch_bytes(const MatmulParams& params, const DLTensor& a) {
  return on_cuda(a) ? cuda::call(cuda::backend().matmul_workspace, &params, a.device.device_id) : 0;
}

}  // namespace tropical
