// From a block's results to memory: canonical elements into C, or raw values and chunk ids for the recovery pass.
#pragma once
#include "mainloop.cuh"

namespace tropical::cuda {

// Where a product that tracks argmax leaves values and chunk ids: [member][row][col].
struct Found {
  float* values = nullptr;
  uint16_t* ids = nullptr;
};

// Four (or two) neighbours of a row of C at once; only where C is not read.
template <class Core, class M>
__device__ __forceinline__ void store_rows(const SlimArgs& p, const M& loop, int64_t c_offset, int row0, int col0,
                                           bool vectors) {
  using In = typename Core::In;
  using Out = Output<typename Core::S, In, typename Core::Q>;
  constexpr int kVector = M::StagesB::kVector;
  auto* c = static_cast<Stored<In>*>(p.c) + c_offset;
  if constexpr (!M::StagesB::kAlongK) {
    if (vectors) {
#pragma unroll
      for (int i = 0; i < M::kRows; ++i)
#pragma unroll
        for (int q = 0; q < M::kCols / kVector; ++q) {
          const int row = row0 + loop.row(i), col = col0 + loop.col(q * kVector);
          Vector<Stored<In>, kVector> v;
#pragma unroll
          for (int u = 0; u < kVector; ++u) Out::store(&v.x[u], Core::result(loop.best[i][q * kVector + u]));
          if (row < p.m && col < p.n) *reinterpret_cast<Vector<Stored<In>, kVector>*>(c + row * p.c_row + col) = v;
        }
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < M::kRows; ++i) {
    const int row = row0 + loop.row(i);
    if (row >= p.m) continue;
#pragma unroll
    for (int j = 0; j < M::kCols; ++j) {
      const int col = col0 + loop.col(j);
      if (col >= p.n) continue;
      Out::template finish<false>(Core::result(loop.best[i][j]), {}, 0, c + row * p.c_row + col * p.c_col, nullptr,
                                  p.accumulate, 0);
    }
  }
}

template <class Core, class M>
__device__ __forceinline__ void store_found(const SlimArgs& p, const M& loop, const Found& found, int64_t member,
                                            int row0, int col0) {
#pragma unroll
  for (int i = 0; i < M::kRows; ++i) {
    const int row = row0 + loop.row(i);
    if (row >= p.m) continue;
#pragma unroll
    for (int j = 0; j < M::kCols; ++j) {
      const int col = col0 + loop.col(j);
      if (col >= p.n) continue;
      const int64_t at = (member * p.m + row) * p.n + col;
      found.values[at] = Core::result(loop.best[i][j]);
      found.ids[at] = static_cast<uint16_t>(loop.id(i, j));
    }
  }
}

// Values and indices at once, from operands that are all in shared memory.
template <class Core, class M>
__device__ __forceinline__ void store_indices(const SlimArgs& p, M& loop, int64_t c_offset, int64_t argmax_offset,
                                              int row0, int col0, bool vectors) {
  using S = typename Core::S;
  auto* c = static_cast<float*>(p.c) + c_offset;
  int32_t* argmax = p.argmax + argmax_offset;
  const auto finish = [&](float value, int index, float* to, int32_t* to_argmax, bool accumulate) {
    Output<S, float, float>::template finish<true>(Core::result(value), S::template zero<float>(), index, to, to_argmax,
                                                   accumulate, p.argmax_offset);
  };
  if constexpr (M::kSpreadBytes > 0) {
    loop.for_each_index([&](int i, int j, float value, int index) {
      const int row = row0 + i, col = col0 + j;
      if (row < p.m && col < p.n)
        finish(value, index, c + row * p.c_row + col * p.c_col, argmax + row * p.argmax_row + col * p.argmax_col,
               p.accumulate);
    });
  } else {
#pragma unroll
    for (int i = 0; i < M::kRows; ++i) {
      const int row = row0 + loop.row(i);
      if (row >= p.m) continue;
      const auto index = [&](int j) {
        return loop.first_match(loop.row(i), loop.col(j), loop.best[i][j], loop.id(i, j));
      };
      if constexpr (!M::StagesB::kAlongK) {
        if (vectors) {
#pragma unroll
          for (int j = 0; j < M::kCols; j += 4) {
            const int col = col0 + loop.col(j);
            if (col >= p.n) continue;
            Vector<float, 4> v;
            Vector<int32_t, 4> ids;
#pragma unroll
            for (int u = 0; u < 4; ++u) finish(loop.best[i][j + u], index(j + u), &v.x[u], &ids.x[u], false);
            *reinterpret_cast<Vector<float, 4>*>(c + row * p.c_row + col) = v;
            *reinterpret_cast<Vector<int32_t, 4>*>(argmax + row * p.argmax_row + col) = ids;
          }
          continue;
        }
      }
#pragma unroll
      for (int j = 0; j < M::kCols; ++j) {
        const int col = col0 + loop.col(j);
        if (col < p.n)
          finish(loop.best[i][j], index(j), c + row * p.c_row + col * p.c_col,
                 argmax + row * p.argmax_row + col * p.argmax_col, p.accumulate);
      }
    }
  }
}

}  // namespace tropical::cuda
