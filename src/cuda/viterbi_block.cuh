// Viterbi with few states: a block walks along a sequence by itself, with the transitions in registers.
#pragma once
#include "stages.cuh"
#include "trellis.cuh"

namespace tropical::cuda {

struct BlockWalk {
  // Lanes that share a column, 4 elements of k each in turn.
  static constexpr int kLanes = 8, kVector = 4, kMostStates = 128;
  static constexpr int threads(int64_t states) { return static_cast<int>(ceil_div(states, 32 / kLanes) * 32); }
};

// The values of all steps. kVectors: vectors of k that a lane holds.
template <class In, int kVectors>
__global__ void __launch_bounds__(kVectors * 256) walk_block(const __grid_constant__ Trellis<In> x) {
  using F = typename Trellis<In>::F;
  constexpr int kLanes = BlockWalk::kLanes, kVector = BlockWalk::kVector;
  constexpr int kWide = kVectors * kLanes * kVector;
  using Values = Vector<F, kVector>;
  __shared__ Values values[2][kWide / kVector];
  const int states = static_cast<int>(x.p.states), j = static_cast<int>(threadIdx.x) / kLanes;
  const int part = threadIdx.x % kLanes;
  const bool is_state = j < states, leads = part == 0 && j < x.row;
  F* const mine = values[0][0].x + j;
  const Values* const read = values[0] + part;
  const int64_t stride = x.p.emission.stride[1];
  for (int64_t b = blockIdx.x; b < x.p.batch; b += gridDim.x) {
    F a[kVectors][kVector];
#pragma unroll
    for (int n = 0; n < kVectors; ++n)
#pragma unroll
      for (int u = 0; u < kVector; ++u) {
        const int i = (n * kLanes + part) * kVector + u;
        a[n][u] = is_state && i < states ? x.matrix[x.matrix_at(b) + i * x.row + j] : lowest<F>();
      }
    if (threadIdx.x < 2 * kWide / kVector) values[0][threadIdx.x] = {};
    __syncthreads();

    // Each lane of a column fetches one of the next steps, long before they are due.
    int64_t left = length_of(x.p, b);
    const In* from = static_cast<const In*>(x.p.emission.data) + b * x.p.emission.stride[0] + part * stride +
                     j * x.p.emission.stride[2];
    F* to = x.values(0, b) + j;
    In coming = is_state && part < left ? *from : In{};
    for (bool starts = true; left > 0; left -= kLanes, starts = false) {
      const F here = widen(coming);
      from += kLanes * stride;
      coming = is_state && part + kLanes < left ? *from : In{};
#pragma unroll
      for (int s = 0; s < kLanes; ++s) {
        if (s >= left) break;
        const F emission = __shfl_sync(0xffffffffu, here, s, kLanes);
        F best = lowest<F>();
        if (s == 0 && starts) {
          best = is_state ? x.initial(b, j) : F{0};
        } else {
#pragma unroll
          for (int n = 0; n < kVectors; ++n) {
            const Values v = read[(s + 1) % 2 * (kWide / kVector) + n * kLanes];
            const F of_four =
                larger(larger(v.x[0] + a[n][0], v.x[1] + a[n][1]), larger(v.x[2] + a[n][2], v.x[3] + a[n][3]));
            best = n == 0 ? of_four : larger(best, of_four);
          }
#pragma unroll
          for (int lane = kLanes / 2; lane > 0; lane /= 2)
            best = larger(best, __shfl_xor_sync(0xffffffffu, best, lane));
        }
        const F v = is_state ? best + emission : F{0};
        if (leads) mine[s % 2 * kWide] = v, *to = v;
        to += x.step_size;
        __syncthreads();
      }
    }
    __syncthreads();
  }
}

}  // namespace tropical::cuda
