// Products that fit in kSize x kSize x kSize: a warp (or a part of one) takes a whole matrix. f32.
#pragma once
#include "epilogue.cuh"

namespace tropical::cuda {

template <int Size, int Warps = 4>
struct SmallTile {
  static constexpr int kSize = Size, kRows = Size == 32 ? 8 : 2, kCols = 4;
  static constexpr int kLanesAcross = kSize / kCols, kLanesDown = kSize / kRows;
  static constexpr int kLanes = kLanesAcross * kLanesDown;  // of a matrix
  static constexpr int kWarps = Warps, kMatrices = kWarps * 32 / kLanes;
  static constexpr int kPitchA = kSize + 4;
  // Matrices of one warp start in different banks.
  static constexpr int kFloats = kSize * kPitchA + kSize * kSize + (kLanes < 32 ? 16 : 0);
  static constexpr size_t kSharedBytes = sizeof(float) * kFloats * kMatrices;
};

// Row- or otherwise strided elements into shared memory; beyond the edges the last ones are repeated.
template <class Tile, int kPitch>
__device__ __forceinline__ void load_small(float* to, const float* from, int64_t row, int64_t col, int rows, int cols,
                                           bool vectors, int lane) {
  constexpr int kSize = Tile::kSize;
  if (vectors) {
#pragma unroll
    for (int e = 0; e < kSize * kSize / 4 / Tile::kLanes; ++e) {
      const int at = e * Tile::kLanes + lane, i = at / (kSize / 4), j = at % (kSize / 4) * 4;
      copy_async(to + i * kPitch + j, from + i * row + j);
    }
  } else {
#pragma unroll 8
    for (int e = 0; e < kSize * kSize / Tile::kLanes; ++e) {
      const int at = e * Tile::kLanes + lane, i = at / kSize, j = at % kSize;
      to[i * kPitch + j] = from[min(i, rows - 1) * row + min(j, cols - 1) * col];
    }
  }
}

// vectors_a, _b: rows are whole, contiguous and aligned; vectors_c: those of C and argmax are, and C is not read.
struct SmallArgs {
  SlimArgs p;
  bool vectors_a, vectors_b, vectors_c;
};

// kPlain: all sizes are kSize, everything goes in vectors, the batch has one axis at most. Less code starts sooner.
template <class Core, class Tile, bool kArgmax, bool kPlain>
__global__ void __launch_bounds__(Tile::kWarps * 32) small_product(const __grid_constant__ SmallArgs q) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  using S = typename Core::S;
  using Out = Output<S, float, float>;
  constexpr int kSize = Tile::kSize;
  constexpr int kRows = Tile::kRows, kCols = Tile::kCols, kChunk = 4;
  extern __shared__ __align__(16) unsigned char shared[];
  const SlimArgs& p = q.p;
  const int lane = static_cast<int>(threadIdx.x) % Tile::kLanes, slot = static_cast<int>(threadIdx.x) / Tile::kLanes;
  const int64_t member = blockIdx.x * int64_t{Tile::kMatrices} + slot;
  const bool real = member < p.batch.count;
  int64_t offset[4];
  if constexpr (kPlain) {
#pragma unroll
    for (int o = 0; o < 4; ++o) offset[o] = (real ? member : 0) * p.batch.stride[0][o];
  } else {
    p.batch.offsets(real ? member : 0, offset);
  }
  float* a = reinterpret_cast<float*>(shared) + slot * Tile::kFloats;
  float* b = a + kSize * Tile::kPitchA;
  const int m = kPlain ? kSize : static_cast<int>(p.m), n = kPlain ? kSize : static_cast<int>(p.n);
  const int k_size = kPlain ? kSize : static_cast<int>(p.k);
  load_small<Tile, Tile::kPitchA>(a, static_cast<const float*>(p.a) + offset[0], p.a_row, p.a_col, m, k_size,
                                  kPlain || q.vectors_a, lane);
  load_small<Tile, kSize>(b, static_cast<const float*>(p.b) + offset[1], p.b_row, p.b_col, k_size, n,
                          kPlain || q.vectors_b, lane);
  commit_copies();
  wait_copies<0>();
  __syncwarp();
  if (!real) return;

  const int row0 = lane / Tile::kLanesAcross, col0 = lane % Tile::kLanesAcross * kCols;
  float best[kRows][kCols];
  [[maybe_unused]] int index[kRows][kCols];
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kCols; ++j) best[i][j] = Core::worst(), index[i][j] = 0;
  const auto chunk = [&](int k) {
    float x[kRows][kChunk], y[kChunk][kCols];
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      *reinterpret_cast<Vector<float, 4>*>(x[i]) =
          *reinterpret_cast<const Vector<float, 4>*>(a + (row0 + Tile::kLanesDown * i) * Tile::kPitchA + k);
#pragma unroll
    for (int u = 0; u < kChunk; ++u)
      *reinterpret_cast<Vector<float, 4>*>(y[u]) =
          *reinterpret_cast<const Vector<float, 4>*>(b + (k + u) * kSize + col0);
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kCols; ++j) {
        const float old = best[i][j];
        Core::template step<Mode::value>(x[i][0], y[0][j], x[i][1], y[1][j], best[i][j]);
        Core::template step<Mode::value>(x[i][2], y[2][j], x[i][3], y[3][j], best[i][j]);
        if constexpr (kArgmax)
          if (__float_as_uint(best[i][j]) != __float_as_uint(old) && !(best[i][j] == old)) index[i][j] = k;
      }
  };
  // Without an exit in between, loads of the next chunks go ahead.
  if (k_size > kSize - kChunk) {
#pragma unroll
    for (int k = 0; k < kSize; k += kChunk) chunk(k);
  } else {
#pragma unroll 1
    for (int k = 0; k < k_size; k += kChunk) chunk(k);
  }

  auto* c = static_cast<float*>(p.c) + offset[2];
  [[maybe_unused]] int32_t* argmax = p.argmax + offset[3];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int row = row0 + Tile::kLanesDown * i;
    if constexpr (kArgmax) {
#pragma unroll
      for (int j = 0; j < kCols; ++j) {
        const int k0 = index[i][j];
        int found = 0;
#pragma unroll
        for (int u = kChunk - 1; u >= 0; --u) {
          const float t = Core::candidate(a[row * Tile::kPitchA + k0 + u], b[(k0 + u) * kSize + col0 + j]);
          if ((t == best[i][j] || t != t) && k0 + u < k_size) found = u;
        }
        index[i][j] = k0 + found;
      }
    }
    if (row >= m) continue;
    if (kPlain || q.vectors_c) {
      Vector<float, 4> v;
      Vector<int32_t, 4> ids;
#pragma unroll
      for (int j = 0; j < kCols; ++j)
        Out::template finish<kArgmax>(Core::result(best[i][j]), S::template zero<float>(), index[i][j], &v.x[j],
                                      &ids.x[j], false, p.argmax_offset);
      if (col0 < n) *reinterpret_cast<Vector<float, 4>*>(c + row * p.c_row + col0) = v;
      if (kArgmax && col0 < n) *reinterpret_cast<Vector<int32_t, 4>*>(argmax + row * p.argmax_row + col0) = ids;
    } else if constexpr (!kPlain) {
#pragma unroll
      for (int j = 0; j < kCols; ++j)
        if (col0 + j < n)
          Out::template finish<kArgmax>(Core::result(best[i][j]), S::template zero<float>(), index[i][j],
                                        c + row * p.c_row + (col0 + j) * p.c_col,
                                        argmax + row * p.argmax_row + (col0 + j) * p.argmax_col, p.accumulate,
                                        p.argmax_offset);
    }
  }
#endif
}

}  // namespace tropical::cuda
