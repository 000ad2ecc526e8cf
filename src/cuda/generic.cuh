// The generic product: any strides, any data, any sizes; exact candidate by candidate.
#pragma once
#include "args.h"
#include "pack.cuh"

namespace tropical::cuda {

struct GenericTile {
  static constexpr int kM = 64, kN = 64, kK = 16, kThreads = 256;
  static constexpr int kRows = 4, kCols = 4;  // outputs of a thread
};

// Loads kLines x kK elements of one operand, element by element. `line` is the axis that is kept in C.
template <class E, class Tile, int kLines>
class TileLoader {
  using In = typename E::In;
  static constexpr int kEach = kLines * Tile::kK / Tile::kThreads;
  static constexpr int kLinesStep = Tile::kThreads / Tile::kK, kKStep = Tile::kThreads / kLines;

 public:
  using Buffer = typename E::T[Tile::kK][kLines + 16 / sizeof(typename E::T)];

  // Neighbouring threads take neighbouring elements of memory.
  __device__ TileLoader(const void* data, int64_t offset, int64_t line_stride, int64_t k_stride, int64_t first,
                        int64_t lines, int64_t k)
      : data_(static_cast<const Stored<In>*>(data) + offset),
        k_stride_(k_stride),
        k_(k),
        along_k_(is_along_k(line_stride, k_stride)) {
    const int thread = static_cast<int>(threadIdx.x);
    line_ = along_k_ ? thread / Tile::kK : thread % kLines;
    step_ = along_k_ ? thread % Tile::kK : thread / kLines;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      // Lines beyond the edge repeat the last one; their outputs are not stored.
      const int64_t line = min(first + line_ + (along_k_ ? e * kLinesStep : 0), lines - 1);
      at_[e] = line * line_stride;
    }
  }
  __device__ void fetch(int64_t k0) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      // Steps beyond the end repeat the last k: taking it twice changes nothing.
      const int64_t k = min(k0 + step_ + (along_k_ ? 0 : e * kKStep), k_ - 1);
      held_[e] = data_[at_[e] + k * k_stride_];
    }
  }
  __device__ void put(Buffer& buffer) const {
#pragma unroll
    for (int e = 0; e < kEach; ++e)
      buffer[step_ + (along_k_ ? 0 : e * kKStep)][line_ + (along_k_ ? e * kLinesStep : 0)] = E::load(held_[e]);
  }

 private:
  __device__ static bool is_along_k(int64_t line_stride, int64_t k_stride) {
    const int64_t line = line_stride < 0 ? -line_stride : line_stride, k = k_stride < 0 ? -k_stride : k_stride;
    return k < line;
  }

  const Stored<In>* data_;
  int64_t k_stride_, k_, at_[kEach];
  int line_, step_;
  bool along_k_;
  Stored<In> held_[kEach];
};

// The part of K that split `s` of `splits` takes: whole k-tiles.
TROPICAL_HD inline int64_t split_begin(int64_t k, int tile_k, int64_t splits, int64_t s) {
  const int64_t tiles = (k + tile_k - 1) / tile_k;
  const int64_t at = tiles * s / splits * tile_k;
  return at < k ? at : k;
}

// Where a split of K leaves what it found, for merge_splits.
template <class T>
struct Partial {
  T* values = nullptr;  // [split][member][i][j]
  int32_t* index = nullptr;
  int64_t splits = 1;
  // What is added to the index of split s: min(s * index_step, index_last).
  int64_t index_step = 0, index_last = 0;
};

// With `facts` of the operands it runs only where they keep the fast kernel of the same call from running.
template <class L, bool kArgmax, class Tile>
__global__ void __launch_bounds__(Tile::kThreads)
    generic_product(const __grid_constant__ ProductArgs p, const __grid_constant__ Partial<typename L::T> partial,
                    const int* facts, const int* done) {
  using E = Elements<L, kArgmax>;
  using T = typename E::T;
  using S = typename E::S;
  using In = typename E::In;
  constexpr int kM = Tile::kRows, kN = Tile::kCols;
  constexpr int kAcross = Tile::kN / kN;
  __shared__ __align__(16) typename TileLoader<E, Tile, Tile::kM>::Buffer a_tile[2];
  __shared__ __align__(16) typename TileLoader<E, Tile, Tile::kN>::Buffer b_tile[2];
  if (is_done(done) || (facts && !is_flagged<typename CoreFor<typename L::S, typename L::In>::type>(facts))) return;

  const int tx = static_cast<int>(threadIdx.x) % kAcross, ty = static_cast<int>(threadIdx.x) / kAcross;
  const int64_t across = (p.n + Tile::kN - 1) / Tile::kN, down = (p.m + Tile::kM - 1) / Tile::kM;
  const int64_t tiles = across * down * p.batch.count;
  for (int64_t work = blockIdx.x; work < tiles * partial.splits; work += gridDim.x) {
    const int64_t split = work / tiles, tile = work % tiles;
    const int64_t member = tile / (across * down), in_member = tile % (across * down);
    const int64_t i0 = in_member / across * Tile::kM, j0 = in_member % across * Tile::kN;
    const int64_t k_begin = split_begin(p.k, Tile::kK, partial.splits, split);
    const int64_t k_end = split_begin(p.k, Tile::kK, partial.splits, split + 1);
    int64_t offset[4];
    p.batch.offsets(member, offset);

    TileLoader<E, Tile, Tile::kM> a(p.a, offset[0], p.a_row, p.a_col, i0, p.m, k_end);
    TileLoader<E, Tile, Tile::kN> b(p.b, offset[1], p.b_col, p.b_row, j0, p.n, k_end);
    T best[kM][kN];
    int32_t index[kM][kN];
#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
      for (int j = 0; j < kN; ++j) best[i][j] = E::worst(), index[i][j] = static_cast<int32_t>(k_begin);

    __syncthreads();  // the tiles of the previous round have been read
    if (k_begin < k_end) {
      a.fetch(k_begin), b.fetch(k_begin);
      a.put(a_tile[0]), b.put(b_tile[0]);
    }
    __syncthreads();
    int stage = 0;
    for (int64_t k0 = k_begin; k0 < k_end; k0 += Tile::kK, stage ^= 1) {
      const bool more = k0 + Tile::kK < k_end;
      if (more) a.fetch(k0 + Tile::kK), b.fetch(k0 + Tile::kK);
#pragma unroll 4
      for (int k = 0; k < Tile::kK; ++k) {
        T x[kM], y[kN];
#pragma unroll
        for (int i = 0; i < kM; ++i) x[i] = a_tile[stage][k][ty * kM + i];
#pragma unroll
        for (int j = 0; j < kN; ++j) y[j] = b_tile[stage][k][tx * kN + j];
#pragma unroll
        for (int i = 0; i < kM; ++i)
#pragma unroll
          for (int j = 0; j < kN; ++j) {
            const T t = E::candidate(x[i], y[j]);
            if (E::selects(t, best[i][j])) {
              best[i][j] = t;
              if constexpr (kArgmax) index[i][j] = static_cast<int32_t>(k0) + k;
            }
          }
      }
      if (more) a.put(a_tile[stage ^ 1]), b.put(b_tile[stage ^ 1]);
      __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < kM; ++i)
#pragma unroll
      for (int j = 0; j < kN; ++j) {
        const int64_t row = i0 + ty * kM + i, col = j0 + tx * kN + j;
        if (row >= p.m || col >= p.n) continue;
        if (partial.values) {
          const int64_t at = ((split * p.batch.count + member) * p.m + row) * p.n + col;
          partial.values[at] = best[i][j];
          if constexpr (kArgmax) partial.index[at] = index[i][j];
          continue;
        }
        Output<S, In, typename E::Q>::template finish<kArgmax>(
            p.k == 0 ? E::zero() : E::result(best[i][j]), E::zero(), p.k == 0 ? -1 : index[i][j],
            static_cast<Stored<In>*>(p.c) + offset[2] + row * p.c_row + col * p.c_col,
            kArgmax ? p.argmax + offset[3] + row * p.argmax_row + col * p.argmax_col : nullptr, p.accumulate,
            p.argmax_offset);
      }
  }
}

// The best of the splits, the earlier one on a tie. Eight warps share 32 outputs.
template <class L, bool kArgmax>
__global__ void __launch_bounds__(256)
    merge_splits(const __grid_constant__ ProductArgs p, const __grid_constant__ Partial<typename L::T> partial,
                 const int* facts, const int* done) {
  using E = Elements<L, kArgmax>;
  using In = typename E::In;
  using T = typename E::T;
  if (is_done(done) || (facts && !is_flagged<typename CoreFor<typename L::S, typename L::In>::type>(facts))) return;
  __shared__ T values[8][32];
  __shared__ int32_t indices[8][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t count = p.batch.count * p.m * p.n;
  const auto index_of = [&](int64_t s, int64_t at) {
    return kArgmax
               ? partial.index[s * count + at] + static_cast<int32_t>(min(s * partial.index_step, partial.index_last))
               : 0;
  };
  for (int64_t first = blockIdx.x * int64_t{32}; first < count; first += gridDim.x * int64_t{32}) {
    const int64_t at = min(first + lane, count - 1);
    const int64_t begin = partial.splits * warp / 8, end = partial.splits * (warp + 1) / 8;
    T best = E::worst();
    int32_t index = 0;
    if (begin < end) best = partial.values[begin * count + at], index = index_of(begin, at);
#pragma unroll 4
    for (int64_t s = begin + 1; s < end; ++s) {
      const T x = partial.values[s * count + at];
      const int32_t x_index = index_of(s, at);
      if (E::selects(x, best)) best = x, index = x_index;
    }
    values[warp][lane] = best;
    indices[warp][lane] = index;
    __syncthreads();
    if (warp == 0 && first + lane < count) {
      bool any = begin < end;
      for (int w = 1; w < 8; ++w) {
        if (partial.splits * w / 8 == partial.splits * (w + 1) / 8) continue;
        if (any && !E::selects(values[w][lane], best)) continue;
        best = values[w][lane], index = indices[w][lane];
        any = true;
      }
      const int64_t col = at % p.n, row = at / p.n % p.m;
      int64_t offset[4];
      p.batch.offsets(at / p.n / p.m, offset);
      Output<typename E::S, In, typename E::Q>::template finish<kArgmax>(
          E::result(best), E::zero(), index, static_cast<Stored<In>*>(p.c) + offset[2] + row * p.c_row + col * p.c_col,
          kArgmax ? p.argmax + offset[3] + row * p.argmax_row + col * p.argmax_col : nullptr, p.accumulate,
          p.argmax_offset);
    }
    __syncthreads();
  }
}

}  // namespace tropical::cuda
