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
  Batch<1, kSlimDims> batch;  // of distinct members: axes along which the operand is broadcast are left out
  int* facts;                 // Fact bits; nullptr where the core has no use for them
  const int* done;
};

// A block moves kPackLines x kPackSlots elements of the copy.
inline constexpr int kPackLines = 64, kPackSlots = 32, kPackThreads = 256;

template <class Core>
__global__ void __launch_bounds__(kPackThreads) pack(const __grid_constant__ PackArgs p) {
  using In = typename Core::In;
  using T = typename Core::T;
  constexpr int kSteps = Core::kSteps, kEach = kPackLines * kPackSlots / kPackThreads;
  __shared__ T tile[kPackSlots][kPackLines + 1];
  if (is_done(p.done)) return;
  const int slots = static_cast<int>((p.k + kSteps - 1) / kSteps), pitch = static_cast<int>(p.line_pitch);
  const unsigned across = (pitch + kPackLines - 1u) / kPackLines, down = (slots + kPackSlots - 1u) / kPackSlots;
  const unsigned member = p.batch.count == 1 ? 0 : blockIdx.x / (across * down);
  const unsigned in_member = blockIdx.x - member * across * down;
  const int line0 = static_cast<int>(in_member % across * kPackLines);
  const int slot0 = static_cast<int>(in_member / across * kPackSlots);
  const int thread = static_cast<int>(threadIdx.x);
  int64_t offset[1];
  p.batch.offsets(member, offset);
  const auto* from = static_cast<const Stored<In>*>(p.from) + offset[0];

  // Neighbouring threads read neighbours in memory.
  const int64_t line_size = p.line < 0 ? -p.line : p.line, k_size = p.k_step < 0 ? -p.k_step : p.k_step;
  const bool along_k = k_size < line_size;
  const int slot = along_k ? thread % kPackSlots : thread / kPackLines;
  const int line = along_k ? thread / kPackSlots : thread % kPackLines;
  const int slot_step = along_k ? 0 : kPackThreads / kPackLines, line_step = along_k ? kPackThreads / kPackSlots : 0;
  [[maybe_unused]] int facts = 0;
  T held[kEach];
  const auto take = [&](const Stored<In>(&x)[kSteps]) {
    if constexpr (Core::kFlagged) {
#pragma unroll
      for (int s = 0; s < kSteps; ++s) facts |= Core::facts(x[s]);
    }
    return Core::load(x);
  };
  if (line0 + kPackLines <= p.lines && (slot0 + kPackSlots) * int64_t{kSteps} <= p.k) {
    const auto* x = from + (line0 + line) * p.line + (slot0 + slot) * int64_t{kSteps} * p.k_step;
    const int64_t step = line_step * p.line + slot_step * int64_t{kSteps} * p.k_step;
#pragma unroll
    for (int e = 0; e < kEach; ++e, x += step) {
      Stored<In> raw[kSteps];
#pragma unroll
      for (int s = 0; s < kSteps; ++s) raw[s] = x[s * p.k_step];
      held[e] = take(raw);
    }
  } else {
    // Lines and steps beyond the end repeat the last one.
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const auto* x = from + min(int64_t{line0 + line + e * line_step}, p.lines - 1) * p.line;
      const int64_t first = min(slot0 + slot + e * slot_step, slots - 1) * int64_t{kSteps};
      Stored<In> raw[kSteps];
#pragma unroll
      for (int s = 0; s < kSteps; ++s) raw[s] = x[min(first + s, p.k - 1) * p.k_step];
      held[e] = take(raw);
    }
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) tile[slot + e * slot_step][line + e * line_step] = held[e];
  __syncthreads();
  T* to = static_cast<T*>(p.to) + member * p.member_pitch + int64_t{slot0} * pitch + line0;
  const int out = thread % kPackLines;
  if (line0 + out < pitch) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int s = thread / kPackLines + e * (kPackThreads / kPackLines);
      if (slot0 + s < slots) to[int64_t{s} * pitch + out] = tile[s][out];
    }
  }
  if constexpr (Core::kFlagged) {
    for (int d = 16; d > 0; d /= 2) facts |= __shfl_xor_sync(~0u, facts, d);
    if (p.facts && facts && thread % 32 == 0) atomicOr(p.facts, facts);
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
