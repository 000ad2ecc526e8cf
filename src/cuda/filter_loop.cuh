// The filter's loop over k: of every output the largest bound, the chunk of k it is in, and whether another chunk's
// bound is near it.
#pragma once
#include "fast.cuh"
#include "filter_args.cuh"
#include "tile_config.h"

namespace tropical::cuda::filter {

// Chunks are stages. (n = 4096 on an H200: 51 MAC a clock and multiprocessor; without ids 57; 64 is the limit of f32.)
using LargeTile = FastTile<128, 128, kChunk, 8, 8, 3, 1, 1>;
using SmallTile = FastTile<64, 64, kChunk, 8, 4, 3, 1, 3>;

template <class Tile>
struct LoopStages {
  using A = cuda::Stages<float, Tile, Tile::kM, Contiguous::lines, false, false, true>;
  using B = cuda::Stages<float, Tile, Tile::kN, Contiguous::lines, false, false, true>;
  static constexpr size_t kBytes = sizeof(float) * Tile::kStages * (A::kSize + B::kSize);
};

template <class Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks) best_bounds(const __grid_constant__ Args q) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  using A = typename LoopStages<Tile>::A;
  using B = typename LoopStages<Tile>::B;
  constexpr int kRows = Tile::kRows, kCols = Tile::kCols, kVector = A::kVector;
  extern __shared__ __align__(16) float stages[];
  if (declined(q)) return;
  float* const a_stages = stages;
  float* const b_stages = stages + Tile::kStages * A::kSize;
  const TilePlace place = place_of<Tile>(q.p, blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  constexpr int kWarpsAcross = Tile::kN / (8 * kCols);
  const int first_row = warp / kWarpsAcross * (4 * kRows / kVector) + lane / 8;
  const int first_col = warp % kWarpsAcross * (8 * kCols / kVector) + lane % 8;
  const int count = q.steps / Tile::kK;
  const auto fetch = [&](int t) {
    if (t < count) {
      const int s = t % Tile::kStages;
      A::load(a_stages + s * A::kSize, q.a.by_k, q.a.padded, place.row, q.a.padded, t * Tile::kK, q.steps);
      B::load(b_stages + s * B::kSize, q.b.by_k, q.b.padded, place.col, q.b.padded, t * Tile::kK, q.steps);
    }
    commit_copies();
  };

  uint32_t best[kRows][kCols], ids[kRows][kCols / 2];  // two ids in a register
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kCols; ++j) best[i][j] = ~0u, ids[i][j / 2] = 0;
#pragma unroll
  for (int t = 0; t < Tile::kStages - 1; ++t) fetch(t);
  for (int t = 0; t < count; ++t) {
    wait_copies<Tile::kStages - 2>();
    __syncthreads();
    fetch(t + Tile::kStages - 1);
    const float* a = a_stages + t % Tile::kStages * A::kSize;
    const float* b = b_stages + t % Tile::kStages * B::kSize;
    uint32_t bound[kRows][kCols];
    const auto two_steps = [&](auto first, int k) {
      float x[2][kRows], y[2][kCols];
      A::template read<kRows, 4>(a, first_row, k, x);
      B::template read<kCols, 8>(b, first_col, k, y);
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kCols; ++j) {
          const uint32_t u0 = bits_of(add_up(x[0][i], y[0][j])), u1 = bits_of(add_up(x[1][i], y[1][j]));
          bound[i][j] = first ? min(u0, u1) : __vimin3_u32(bound[i][j], u0, u1);
        }
    };
    two_steps(std::true_type(), 0);
#pragma unroll
    for (int k = 2; k < Tile::kK; k += 2) two_steps(std::false_type(), k);

    // An id is written where a chunk is better; whether some bound is near is looked at for the warp first, as it is
    // rare.
    const auto low = static_cast<uint32_t>(t), high = low << 16;
    const auto set_id = [&](uint32_t& word, int j) {
      word = j & 1 ? __byte_perm(word, high, 0x7610) : __byte_perm(word, low, 0x3254);
    };
    bool any_near = false;
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kCols; ++j) any_near |= near(bound[i][j], best[i][j]);
    if (__any_sync(~0u, any_near)) {
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kCols; ++j) {
          const bool is_near = near(bound[i][j], best[i][j]);
          if (bound[i][j] < best[i][j]) best[i][j] = bound[i][j], set_id(ids[i][j / 2], j);
          if (is_near) ids[i][j / 2] |= uint32_t{kNear} << (j & 1 ? 16 : 0);
        }
    } else {
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kCols; ++j)
          if (bound[i][j] < best[i][j]) best[i][j] = bound[i][j], set_id(ids[i][j / 2], j);
    }
  }

#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kCols; j += kVector) {
      const int64_t at = int64_t{place.row + A::template line<4>(first_row, i)} * q.b.padded + place.col +
                         B::template line<8>(first_col, j);
      *reinterpret_cast<uint4*>(q.best + at) = make_uint4(best[i][j], best[i][j + 1], best[i][j + 2], best[i][j + 3]);
      *reinterpret_cast<uint2*>(q.id + at) = make_uint2(ids[i][j / 2], ids[i][j / 2 + 1]);
    }
#endif
}

}  // namespace tropical::cuda::filter
