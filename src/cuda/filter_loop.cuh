// The filter's loop over k: of every output the best sum of bounds, the first chunk of k that has it, and what is
// needed of the second best chunk.
#pragma once
#include "fast.cuh"
#include "filter_args.cuh"
#include "tile_config.h"

namespace tropical::cuda::filter {

// A stage is a chunk. Of 64 MAC a clock and multiprocessor, the limit of f32, the loop by float does 51 on an H200 at
// n = 4096 (57 without ids); by fixed point 104 of 128.
template <class F>
struct Loop;

// In registers: for each output the best bits; ids are pairs.
template <>
struct Loop<ByFloat> {
  using LargeTile = FastTile<128, 128, ByFloat::kChunk, 8, 8, 3, 1, 1>;
  using SmallTile = FastTile<64, 64, ByFloat::kChunk, 8, 4, 3, 1, 3>;
  using Word = float;
  static constexpr int kColumns = 1;  // in a word of B

  template <int kRows, int kCols>
  struct Best {
    uint32_t best[kRows][kCols], ids[kRows][kCols / 2], sum[kRows][kCols];

    __device__ __forceinline__ explicit Best(uint32_t) {
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kCols; ++j) best[i][j] = ~0u, ids[i][j / 2] = 0;
    }
    template <bool kFirst>
    __device__ __forceinline__ void two_steps(int i, int j, float a0, float b0, float a1, float b1) {
      const uint32_t u0 = ByFloat::sum(a0, b0), u1 = ByFloat::sum(a1, b1);
      sum[i][j] = kFirst ? min(u0, u1) : __vimin3_u32(sum[i][j], u0, u1);
    }
    // An id is written where a chunk is better. Whether some sum is near is looked at for the warp first, as it is
    // rare.
    __device__ __forceinline__ void end_chunk(uint32_t chunk) {
      const uint32_t high = chunk << 16;
      const auto set_id = [&](uint32_t& word, int j) {
        word = j & 1 ? __byte_perm(word, high, 0x7610) : __byte_perm(word, chunk, 0x3254);
      };
      bool any_near = false;
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kCols; ++j) any_near |= ByFloat::is_near(sum[i][j], best[i][j]);
      if (__any_sync(~0u, any_near)) {
#pragma unroll
        for (int i = 0; i < kRows; ++i)
#pragma unroll
          for (int j = 0; j < kCols; ++j) {
            const bool is_near = ByFloat::is_near(sum[i][j], best[i][j]);
            if (sum[i][j] < best[i][j]) best[i][j] = sum[i][j], set_id(ids[i][j / 2], j);
            if (is_near) ids[i][j / 2] |= uint32_t{kNear} << (j & 1 ? 16 : 0);
          }
      } else {
#pragma unroll
        for (int i = 0; i < kRows; ++i)
#pragma unroll
          for (int j = 0; j < kCols; ++j)
            if (sum[i][j] < best[i][j]) best[i][j] = sum[i][j], set_id(ids[i][j / 2], j);
      }
    }
    // Four neighbours of a row.
    __device__ __forceinline__ void store(const Args<ByFloat>& q, int i, int j, int64_t at) const {
      *reinterpret_cast<uint4*>(static_cast<uint32_t*>(q.best) + at) =
          make_uint4(best[i][j], best[i][j + 1], best[i][j + 2], best[i][j + 3]);
      *reinterpret_cast<uint2*>(q.id + at) = make_uint2(ids[i][j / 2], ids[i][j / 2 + 1]);
    }
  };
};

// The smaller of two pairs, and in which halves it is the first.
__device__ __forceinline__ uint32_t min_pair(uint32_t x, uint32_t y, bool& low, bool& high) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  // Not __vibmin_u16x2: up to CUDA 13.0 its result may share a register with x, which it then compares with itself.
  uint32_t r, is_low, is_high;
  asm("{.reg .pred p, q; .reg .u16 a, b, c, d; min.u16x2 %0, %3, %4; mov.b32 {a, b}, %0; mov.b32 {c, d}, %3;"
      "setp.eq.u16 p, a, c; setp.eq.u16 q, b, d; selp.b32 %1, 1, 0, p; selp.b32 %2, 1, 0, q;}"
      : "=&r"(r), "=&r"(is_low), "=&r"(is_high)
      : "r"(x), "r"(y));
  low = is_low, high = is_high;
  return r;
#else
  return x;
#endif
}

// In registers: pairs of neighbouring columns throughout.
template <>
struct Loop<ByFixed> {
  using LargeTile = FastTile<64, 64, ByFixed::kChunk, 8, 4, 2, 1, 2>;
  using SmallTile = LargeTile;
  using Word = uint32_t;
  static constexpr int kColumns = 2;

  template <int kRows, int kCols>
  struct Best {
    uint32_t best[kRows][kCols], second[kRows][kCols], ids[kRows][kCols], sum[kRows][kCols];
    const uint32_t zero;

    __device__ __forceinline__ explicit Best(uint32_t zero_) : zero(zero_) {
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kCols; ++j) best[i][j] = second[i][j] = ~0u, ids[i][j] = 0;
    }
    template <bool kFirst>
    __device__ __forceinline__ void two_steps(int i, int j, uint32_t a0, uint32_t b0, uint32_t a1, uint32_t b1) {
      sum[i][j] = __viaddmin_u16x2(a1, b1, __viaddmin_u16x2(a0, b0, kFirst ? ~0u : sum[i][j]));
    }
    __device__ __forceinline__ void end_chunk(uint32_t chunk) {
      const uint32_t pair = chunk * 0x10001u;
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kCols; ++j) {
          // max(best, min(sum, second)), by instructions of twice the rate of minima.
          second[i][j] = __viaddmax_u16x2(__viaddmin_u16x2(sum[i][j], zero, second[i][j]), zero, best[i][j]);
          bool low, high;
          best[i][j] = min_pair(best[i][j], sum[i][j], low, high);
          if (!low) ids[i][j] = __byte_perm(ids[i][j], pair, 0x3254);
          if (!high) ids[i][j] = __byte_perm(ids[i][j], pair, 0x7610);
        }
    }
    // Eight neighbours of a row.
    __device__ __forceinline__ void store(const Args<ByFixed>& q, int i, int j, int64_t at) const {
      const auto four = [&](const uint32_t(&x)[kRows][kCols], void* to) {
        *reinterpret_cast<uint4*>(static_cast<uint16_t*>(to) + at) =
            make_uint4(x[i][j], x[i][j + 1], x[i][j + 2], x[i][j + 3]);
      };
      four(best, q.best), four(second, q.second), four(ids, q.id);
    }
  };
};

template <class F, class Tile>
struct LoopStages {
  using A = Stages<typename Loop<F>::Word, Tile, Tile::kM, Contiguous::lines, false, false, true>;
  using B = Stages<typename Loop<F>::Word, Tile, Tile::kN, Contiguous::lines, false, false, true>;
  static constexpr size_t kBytes = 4 * Tile::kStages * (A::kSize + B::kSize);
};

template <class F, class Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks) best_sums(const __grid_constant__ Args<F> q) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  using A = typename LoopStages<F, Tile>::A;
  using B = typename LoopStages<F, Tile>::B;
  using Word = typename Loop<F>::Word;
  constexpr int kRows = Tile::kRows, kCols = Tile::kCols, kVector = A::kVector, kColumns = Loop<F>::kColumns;
  extern __shared__ __align__(16) unsigned char shared[];
  if (q.declined()) return;
  auto* const a_stages = reinterpret_cast<Word*>(shared);
  Word* const b_stages = a_stages + Tile::kStages * A::kSize;
  const unsigned down = (static_cast<unsigned>(q.p.m) + Tile::kM - 1) / Tile::kM;
  constexpr unsigned kWidth = Tile::kN * kColumns;
  const unsigned across = (static_cast<unsigned>(q.p.n) + kWidth - 1) / kWidth;
  const TilePlace place = place_in<Tile>(0, down, across, blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  constexpr int kWarpsAcross = Tile::kN / (8 * kCols);
  const int first_row = warp / kWarpsAcross * (4 * kRows / kVector) + lane / 8;
  const int first_col = warp % kWarpsAcross * (8 * kCols / kVector) + lane % 8;
  const int count = q.steps / Tile::kK, b_words = q.b.padded / kColumns;
  const auto fetch = [&](int t) {
    if (t < count) {
      const int s = t % Tile::kStages;
      A::load(a_stages + s * A::kSize, static_cast<const Word*>(q.a.by_k), q.a.padded, place.row, q.a.padded,
              t * Tile::kK, q.steps);
      B::load(b_stages + s * B::kSize, static_cast<const Word*>(q.b.by_k), b_words, place.col, b_words, t * Tile::kK,
              q.steps);
    }
    commit_copies();
  };

  typename Loop<F>::template Best<kRows, kCols> out(q.zero);
#pragma unroll
  for (int t = 0; t < Tile::kStages - 1; ++t) fetch(t);
  for (int t = 0; t < count; ++t) {
    wait_copies<Tile::kStages - 2>();
    __syncthreads();
    fetch(t + Tile::kStages - 1);
    const Word* a = a_stages + t % Tile::kStages * A::kSize;
    const Word* b = b_stages + t % Tile::kStages * B::kSize;
    const auto two_steps = [&](auto first, int k) {
      Word x[2][kRows], y[2][kCols];
      A::template read<kRows, 4>(a, first_row, k, x);
      B::template read<kCols, 8>(b, first_col, k, y);
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kCols; ++j)
          out.template two_steps<decltype(first)::value>(i, j, x[0][i], y[0][j], x[1][i], y[1][j]);
    };
    two_steps(std::true_type(), 0);
#pragma unroll
    for (int k = 2; k < Tile::kK; k += 2) two_steps(std::false_type(), k);
    out.end_chunk(static_cast<uint32_t>(t));
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kCols; j += kVector)
      out.store(q, i, j,
                int64_t{place.row + A::template line<4>(first_row, i)} * q.b.padded +
                    (place.col + B::template line<8>(first_col, j)) * kColumns);
#endif
}

}  // namespace tropical::cuda::filter
