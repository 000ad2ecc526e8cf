// The fast product: one block, one tile of C, whole K.
#pragma once
#include "epilogue.cuh"
#include "pack.cuh"

namespace tropical::cuda {

struct FastArgs {
  SlimArgs p;  // with the batch strides of the operands as they are given here, in elements of T
  const void* a;
  const void* b;
  int a_pitch, b_pitch;
  int a_lines, b_lines;  // that may be read: whole vectors where they are contiguous
  int k;                 // slots
  Found found;
  const int* facts;
  const int* done;
  bool vectors;  // rows of C (and argmax) may be written in vectors
};

// Tiles are taken in bands of rows, so that the blocks that run together share operands in L2.
struct TilePlace {
  unsigned member;
  int row, col;
};
template <class Tile>
__device__ inline TilePlace place_in(unsigned member, unsigned down, unsigned across, unsigned tile) {
  constexpr unsigned kBand = 8;
  const unsigned band = tile / (kBand * across), in_band = tile % (kBand * across);
  const unsigned rows = min(down - band * kBand, kBand);
  return {member, static_cast<int>((band * kBand + in_band % rows) * Tile::kM),
          static_cast<int>(in_band / rows * Tile::kN)};
}
template <class Tile>
__device__ inline TilePlace place_of(const SlimArgs& p, unsigned block) {
  if (p.batch.count == gridDim.x) return {block, 0, 0};  // without divisions, which a small tile has to wait for
  const auto down = static_cast<unsigned>(p.m + Tile::kM - 1) / Tile::kM;
  const auto across = static_cast<unsigned>(p.n + Tile::kN - 1) / Tile::kN;
  const unsigned member = p.batch.count == 1 ? 0 : block / (down * across);
  return place_in<Tile>(member, down, across, block - member * down * across);
}

template <class Core, class Tile, Contiguous kA, Contiguous kB, Track kTrack>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks) fast_product(const __grid_constant__ FastArgs q) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  using Loop = Mainloop<Core, Tile, kA, kB, kTrack>;
  using T = typename Core::T;
  extern __shared__ __align__(16) unsigned char shared[];
  if (is_done(q.done) || is_flagged<Core>(q.facts)) return;
  const SlimArgs& p = q.p;
  const TilePlace place = place_of<Tile>(p, blockIdx.x);
  int64_t offset[4];
  p.batch.offsets(place.member, offset);
  const LoopArgs<T> args{static_cast<const T*>(q.a) + offset[0],
                         static_cast<const T*>(q.b) + offset[1],
                         q.a_pitch,
                         q.b_pitch,
                         place.row,
                         place.col,
                         q.a_lines,
                         q.b_lines,
                         q.k};
  Loop loop(shared, args);
  loop.run();
  if constexpr (kTrack == Track::indices) {
    store_indices<Core>(p, loop, offset[2], offset[3], place.row, place.col, q.vectors);
    return;
  }
  if (loop.group() > 0) return;
  if constexpr (kTrack == Track::chunks)
    store_found<Core>(p, loop, q.found, place.member, place.row, place.col);
  else
    store_rows<Core>(p, loop, offset[2], place.row, place.col, q.vectors);
#endif
}

// From chunk ids to indices. A warp takes 32 neighbouring outputs of a row; kChunk / 4 lanes look at an output's chunk
// together, four steps each.
template <class Core, int kChunk, bool kVectors>
__global__ void __launch_bounds__(256)
    recover(const __grid_constant__ SlimArgs p, const __grid_constant__ Found found, const int* done) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  if (is_done(done)) return;
  using S = typename Core::S;
  constexpr int kLanes = kChunk / 4, kAtOnce = 32 / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % 32, part = lane % kLanes, slot = lane / kLanes;
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k_size = static_cast<int>(p.k);
  // Eight rows of 32 columns: the warps of a block read the same columns of B.
  const unsigned across = (n + 31u) / 32, down = (m + 7u) / 8;
  const unsigned member = p.batch.count == 1 ? 0 : blockIdx.x / (across * down);
  const unsigned in_member = blockIdx.x - member * across * down;
  const int row = static_cast<int>(in_member / across * 8 + threadIdx.x / 32);
  const int col0 = static_cast<int>(in_member % across * 32);
  if (row >= m) return;
  int64_t offset[4];
  p.batch.offsets(member, offset);
  const auto* a = static_cast<const float*>(p.a) + offset[0] + row * p.a_row;
  const auto* b = static_cast<const float*>(p.b) + offset[1];
  const int64_t at = (int64_t{member} * m + row) * n + min(col0 + lane, n - 1);
  const float value = found.values[at];
  const int id = found.ids[at];

  float x[kLanes][4], y[kLanes][4];
#pragma unroll
  for (int s = 0; s < kLanes; ++s) {
    const int of = s * kAtOnce + slot;
    const int k = __shfl_sync(~0u, id, of) * kChunk + part * 4;
    const auto* b_line = b + min(col0 + of, n - 1) * p.b_col;
    if constexpr (kVectors) {
      const int from = min(k, k_size - 4);
      const auto va = *reinterpret_cast<const Vector<float, 4>*>(a + from);
      const auto vb = *reinterpret_cast<const Vector<float, 4>*>(b_line + from);
#pragma unroll
      for (int u = 0; u < 4; ++u) x[s][u] = va.x[u], y[s][u] = vb.x[u];
    } else {
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const int from = min(k + u, k_size - 1);
        x[s][u] = a[from * p.a_col], y[s][u] = b_line[from * p.b_row];
      }
    }
  }
  int index = 0;
#pragma unroll
  for (int s = 0; s < kLanes; ++s) {
    const int of = s * kAtOnce + slot;
    const float best = __shfl_sync(~0u, value, of);
    const int k = __shfl_sync(~0u, id, of) * kChunk + part * 4;
    int found_at = kChunk;
#pragma unroll
    for (int u = 3; u >= 0; --u) {
      const float t = S::mul(x[s][u], y[s][u]);
      if ((t == best || t != t) && k + u < k_size) found_at = part * 4 + u;
    }
#pragma unroll
    for (int d = 1; d < kLanes; d *= 2) found_at = min(found_at, __shfl_xor_sync(~0u, found_at, d));
    const int mine = __shfl_sync(~0u, found_at, lane % kAtOnce * kLanes);
    if (lane / kAtOnce == s) index = id * kChunk + mine;
  }
  const int col = col0 + lane;
  if (col >= n) return;
  Output<S, float, float>::finish<true>(
      value, S::template zero<float>(), index, static_cast<float*>(p.c) + offset[2] + row * p.c_row + col * p.c_col,
      p.argmax + offset[3] + row * p.argmax_row + col * p.argmax_col, p.accumulate, p.argmax_offset);
#endif
}

}  // namespace tropical::cuda
