// A copy of an operand as the fast kernels want it: lines next to each other, k outermost, elements converted; and a
// look at the elements on the way.
#pragma once
#include "args.h"
#include "core_ops.cuh"

namespace tropical::cuda {

struct PackArgs {
  const void* from;
  void* to;              // [member][k / steps][line], lines padded to line_pitch
  int64_t line, k_step;  // strides of `from`
  int64_t lines, k;
  int64_t line_pitch, member_pitch;
  Batch<1> batch;  // of distinct members: axes along which the operand is broadcast are left out
  int* facts;      // Fact bits; nullptr where the core has no use for them
};

// A block moves kPackLines x kPackSlots elements of the copy.
inline constexpr int kPackLines = 64, kPackSlots = 32, kPackThreads = 256;

template <class Core>
__global__ void __launch_bounds__(kPackThreads) pack(const __grid_constant__ PackArgs p) {
  using In = typename Core::In;
  using T = typename Core::T;
  constexpr int kSteps = Core::kSteps;
  __shared__ T tile[kPackSlots][kPackLines + 1];
  const int64_t slots = (p.k + kSteps - 1) / kSteps;
  const int64_t across = (p.line_pitch + kPackLines - 1) / kPackLines, down = (slots + kPackSlots - 1) / kPackSlots;
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t line_size = p.line < 0 ? -p.line : p.line, k_size = p.k_step < 0 ? -p.k_step : p.k_step;
  const bool along_k = k_size < line_size;
  [[maybe_unused]] int facts = 0;
  for (int64_t work = blockIdx.x; work < across * down * p.batch.count; work += gridDim.x) {
    const int64_t line0 = work % across * kPackLines, slot0 = work / across % down * kPackSlots;
    const int64_t member = work / across / down;
    int64_t offset[1];
    p.batch.offsets(member, offset);
    const auto* from = static_cast<const Stored<In>*>(p.from) + offset[0];
#pragma unroll
    for (int e = 0; e < kPackLines * kPackSlots / kPackThreads; ++e) {
      const int at = e * kPackThreads + thread;
      const int slot = along_k ? at % kPackSlots : at / kPackLines, line = along_k ? at / kPackSlots : at % kPackLines;
      // Lines and steps beyond the end repeat the last one.
      const int64_t first = min(slot0 + slot, slots - 1) * kSteps;
      const auto* x = from + min(line0 + line, p.lines - 1) * p.line;
      Stored<In> held[kSteps];
#pragma unroll
      for (int s = 0; s < kSteps; ++s) held[s] = x[min(first + s, p.k - 1) * p.k_step];
      if constexpr (Core::kFlagged) {
#pragma unroll
        for (int s = 0; s < kSteps; ++s) facts |= Core::facts(held[s]);
      }
      tile[slot][line] = Core::load(held);
    }
    __syncthreads();
    T* to = static_cast<T*>(p.to) + member * p.member_pitch;
#pragma unroll
    for (int e = 0; e < kPackLines * kPackSlots / kPackThreads; ++e) {
      const int at = e * kPackThreads + thread;
      const int64_t slot = slot0 + at / kPackLines, line = line0 + at % kPackLines;
      if (slot < slots && line < p.line_pitch) to[slot * p.line_pitch + line] = tile[at / kPackLines][at % kPackLines];
    }
    __syncthreads();
  }
  if constexpr (Core::kFlagged) {
    for (int d = 16; d > 0; d /= 2) facts |= __shfl_xor_sync(~0u, facts, d);
    if (facts && thread % 32 == 0) atomicOr(p.facts, facts);
  }
}

// Whether the fast kernel of this core leaves the product to the generic one.
template <class Core>
__device__ inline bool is_flagged(const int* facts) {
  if constexpr (!std::is_void_v<Core>) {
    if constexpr (Core::kFlagged) return Core::flagged(facts[0], facts[1]);
  }
  return false;
}

}  // namespace tropical::cuda
