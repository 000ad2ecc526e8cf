// Host side of a launch: grids, and shared memory beyond the default limit.
#pragma once
#include <algorithm>
#include <atomic>

#include "call.h"

namespace tropical::cuda {

// Kernels loop over their work, so a grid may be smaller than it.
inline unsigned grid_for(int64_t blocks) { return static_cast<unsigned>(std::min<int64_t>(blocks, 0x7fffffff)); }

// Lets a kernel have as much shared memory as there is; a template argument, so once per kernel and device.
template <auto kKernel>
void raise_shared(const Target& target, size_t shared) {
  if (shared <= (size_t{48} << 10)) return;
  static std::atomic<uint64_t> raised{0};
  const uint64_t bit = uint64_t{1} << (target.device & 63);
  if (target.device <= 63 && (raised.load(std::memory_order_relaxed) & bit)) return;
  cudaFuncAttributes own;
  TG_CUDA_CHECK(cudaFuncGetAttributes(&own, kKernel));
  TG_CUDA_CHECK(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     target.facts->shared_bytes - static_cast<int>(own.sharedSizeBytes)));
  raised.fetch_or(bit, std::memory_order_relaxed);
}

template <auto kKernel, class... Args>
void launch(const Target& target, int64_t blocks, int threads, size_t shared, const Args&... args) {
  if (target.dry || blocks == 0) return;
  raise_shared<kKernel>(target, shared);
  kKernel<<<grid_for(blocks), static_cast<unsigned>(threads), shared, target.stream>>>(args...);
  TG_CUDA_CHECK(cudaGetLastError());
}

// Launches blocks that wait for each other; false where they cannot all run at once.
template <auto kKernel, class Args>
bool launch_together(const Target& target, int blocks, int threads, size_t shared, const Args& args) {
  raise_shared<kKernel>(target, shared);
  int fit = 0;
  TG_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, kKernel, threads, shared));
  if (fit * target.facts->multiprocessors < blocks) return false;
  void* pointers[] = {const_cast<Args*>(&args)};
  TG_CUDA_CHECK(cudaLaunchCooperativeKernel(kKernel, dim3(static_cast<unsigned>(blocks)),
                                            dim3(static_cast<unsigned>(threads)), pointers, shared, target.stream));
  return true;
}

}  // namespace tropical::cuda
