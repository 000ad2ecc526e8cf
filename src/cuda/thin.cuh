// Products of few rows: vector times matrix and its like. They are bound by memory, so every element of B is read once,
// by neighbouring threads where it is contiguous; any strides, any data, exact candidate by candidate.
#pragma once
#include "generic.cuh"

namespace tropical::cuda {

struct ThinTile {
  static constexpr int kThreads = 256, kRows = 4, kK = 64;
  // A thread has a column and walks along k; or a warp has some columns, and its lanes walk along k together.
  static constexpr int kColumns = kThreads, kColumnsOfWarp = 4, kColumnsAlongK = kThreads / 32 * kColumnsOfWarp;

  static constexpr int columns(bool along_k) { return along_k ? kColumnsAlongK : kColumns; }
};

// What a thread has found for some rows and columns.
template <class E, bool kArgmax, int kCols>
struct RunningBest {
  using T = typename E::T;
  T best[ThinTile::kRows][kCols];
  int32_t index[ThinTile::kRows][kCols];

  __device__ explicit RunningBest(int64_t first) {
#pragma unroll
    for (int r = 0; r < ThinTile::kRows; ++r)
#pragma unroll
      for (int c = 0; c < kCols; ++c) best[r][c] = E::worst(), index[r][c] = static_cast<int32_t>(first);
  }
  __device__ void take(int r, int c, T x, int64_t k) {
    if (!E::selects(x, best[r][c])) return;
    best[r][c] = x;
    if constexpr (kArgmax) index[r][c] = static_cast<int32_t>(k);
  }
  // What all lanes found, the lowest index on ties.
  __device__ void merge_lanes() {
#pragma unroll
    for (int r = 0; r < ThinTile::kRows; ++r)
#pragma unroll
      for (int c = 0; c < kCols; ++c)
        for (int step = 16; step > 0; step /= 2) {
          T x;
          if constexpr (sizeof(T) < 4)
            x = static_cast<T>(__shfl_xor_sync(0xffffffffu, static_cast<int>(best[r][c]), step));
          else
            x = __shfl_xor_sync(0xffffffffu, best[r][c], step);
          const int32_t at = kArgmax ? __shfl_xor_sync(0xffffffffu, index[r][c], step) : 0;
          const bool tie = kArgmax && !E::selects(best[r][c], x) && at < index[r][c];
          if (E::selects(x, best[r][c]) || tie) best[r][c] = x, index[r][c] = at;
        }
  }
};

template <class L, bool kArgmax>
__global__ void __launch_bounds__(ThinTile::kThreads)
    thin_product(const __grid_constant__ ProductArgs p, const __grid_constant__ Partial<typename L::T> partial,
                 bool along_k) {
  using E = Elements<L, kArgmax>;
  using T = typename E::T;
  using In = typename E::In;
  constexpr int kRows = ThinTile::kRows, kK = ThinTile::kK;
  __shared__ T a_tile[kK][kRows];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t wide = ThinTile::columns(along_k);
  const int64_t across = (p.n + wide - 1) / wide, groups = (p.m + kRows - 1) / kRows;
  const int64_t tiles = across * groups * p.batch.count;
  for (int64_t work = blockIdx.x; work < tiles * partial.splits; work += gridDim.x) {
    const int64_t split = work / tiles, tile = work % tiles;
    const int64_t member = tile / (across * groups);
    const int64_t i0 = tile / across % groups * kRows, j0 = tile % across * wide;
    const int64_t k_begin = split_begin(p.k, kK, partial.splits, split);
    const int64_t k_end = split_begin(p.k, kK, partial.splits, split + 1);
    int64_t offset[4];
    p.batch.offsets(member, offset);
    const auto* a = static_cast<const Stored<In>*>(p.a) + offset[0];
    const auto* b = static_cast<const Stored<In>*>(p.b) + offset[1];
    const auto put = [&](int r, int64_t col, T best, int32_t index) {
      const int64_t row = i0 + r;
      if (row >= p.m || col >= p.n) return;
      if (partial.values) {
        const int64_t at = ((split * p.batch.count + member) * p.m + row) * p.n + col;
        partial.values[at] = best;
        if constexpr (kArgmax) partial.index[at] = index;
        return;
      }
      Output<typename E::S, In, typename E::Q>::template finish<kArgmax>(
          E::result(best), E::zero(), index, static_cast<Stored<In>*>(p.c) + offset[2] + row * p.c_row + col * p.c_col,
          kArgmax ? p.argmax + offset[3] + row * p.argmax_row + col * p.argmax_col : nullptr, p.accumulate,
          p.argmax_offset);
    };

    if (along_k) {
      constexpr int kCols = ThinTile::kColumnsOfWarp;
      const int lane = thread % 32;
      const int64_t first = j0 + thread / 32 * kCols;
      RunningBest<E, kArgmax, kCols> found(k_begin + lane);
#pragma unroll 2
      for (int64_t k = k_begin + lane; k < k_end; k += 32) {
        T x[kRows], y[kCols];
#pragma unroll
        for (int r = 0; r < kRows; ++r) x[r] = E::load(a[min(i0 + r, p.m - 1) * p.a_row + k * p.a_col]);
#pragma unroll
        for (int c = 0; c < kCols; ++c) y[c] = E::load(b[k * p.b_row + min(first + c, p.n - 1) * p.b_col]);
#pragma unroll
        for (int r = 0; r < kRows; ++r)
#pragma unroll
          for (int c = 0; c < kCols; ++c) found.take(r, c, E::candidate(x[r], y[c]), k);
      }
      found.merge_lanes();
      if (lane == 0)
#pragma unroll
        for (int r = 0; r < kRows; ++r)
#pragma unroll
          for (int c = 0; c < kCols; ++c) put(r, first + c, found.best[r][c], found.index[r][c]);
      continue;
    }

    const int64_t col = min(j0 + thread, p.n - 1);
    RunningBest<E, kArgmax, 1> found(k_begin);
    for (int64_t k0 = k_begin; k0 < k_end; k0 += kK) {
      __syncthreads();  // the tile before has been read
      {
        const int64_t row = min(i0 + thread / kK, p.m - 1), k = min(k0 + thread % kK, k_end - 1);
        a_tile[thread % kK][thread / kK] = E::load(a[row * p.a_row + k * p.a_col]);
      }
      __syncthreads();
#pragma unroll 16
      for (int k = 0; k < kK; ++k) {
        // Steps beyond the end repeat the last k: taking it twice changes nothing.
        const T y = E::load(b[min(k0 + k, k_end - 1) * p.b_row + col * p.b_col]);
#pragma unroll
        for (int r = 0; r < kRows; ++r) found.take(r, 0, E::candidate(a_tile[k][r], y), k0 + k);
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) put(r, j0 + thread, found.best[r][0], found.index[r][0]);
  }
}

}  // namespace tropical::cuda
