// Copies with axes in another order on the device: a block moves tiles through shared memory, so that both arrays are
// read and written in runs.
#include "heuristics.h"
#include "launch.cuh"
#include "permute_tiles.h"
#include "product.h"

namespace tropical::cuda {
namespace {

constexpr int kThreads = 256;

struct PermuteArgs {
  PermuteTiles t;
  const void* from;
  void* to;
  int64_t below[kMaxPermuteAxes];  // tiles that one step along an axis of tiles spans
};

// Tables of offsets in shared memory, one after the other, then the buffer.
struct Tables {
  int64_t *read_run, *read_rest, *write_rest;
  uint16_t *to_run, *to_rest, *from_run, *from_rest;  // in the buffer
  int64_t* offset;                                    // of the tile in either array
  int* extents;                                       // of its axes
};

template <class T>
TROPICAL_HD T* carve(char*& at, int64_t count) {
  T* made = reinterpret_cast<T*>(at);
  at += (count * static_cast<int64_t>(sizeof(T)) + 15) / 16 * 16;
  return made;
}
TROPICAL_HD Tables carve_tables(const PermuteTiles& t, char*& at) {
  const int read_run = t.length(t.read_run), read_rest = t.length(t.read_rest);
  const int write_run = t.length(t.write_run), write_rest = t.length(t.write_rest);
  Tables x;
  x.read_run = carve<int64_t>(at, read_run), x.read_rest = carve<int64_t>(at, read_rest);
  x.write_rest = carve<int64_t>(at, write_rest);
  x.to_run = carve<uint16_t>(at, read_run), x.to_rest = carve<uint16_t>(at, read_rest);
  x.from_run = carve<uint16_t>(at, write_run), x.from_rest = carve<uint16_t>(at, write_rest);
  x.offset = carve<int64_t>(at, 2), x.extents = carve<int>(at, TileList::kMost);
  return x;
}

__device__ void fill(const PermuteTiles& t, const TileList& list, int64_t TileAxis::*step, int64_t* offsets,
                     uint16_t* buffer) {
  for (int i = static_cast<int>(threadIdx.x); i < t.length(list); i += kThreads) {
    if (offsets) offsets[i] = t.offset(list, i, step);
    buffer[i] = static_cast<uint16_t>(t.offset(list, i, &TileAxis::buffer));
  }
}

// Elements of a list in a tile, whose last axis may be cut short.
__device__ int length(const PermuteTiles& t, const TileList& list, const int* extents) {
  int n = 1;
  for (int i = 0; i < list.count; ++i) n *= i + 1 < list.count ? t.axis[list.axis[i]].extent : extents[list.axis[i]];
  return n;
}

// Runs move(run, rest) for all elements; a warp goes along runs, or across them where they are short.
template <class F>
__device__ void each(int run, int rest, F move) {
  const int thread = static_cast<int>(threadIdx.x);
  int lanes = 32;
  while (lanes > 1 && lanes / 2 >= run) lanes /= 2;
  const int x = thread % lanes, y = thread / lanes, lines = kThreads / lanes;
  for (int e = x; e < run; e += lanes) {
#pragma unroll 4
    for (int r = y; r < rest; r += lines) move(e, r);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) permute_tiles(const __grid_constant__ PermuteArgs args) {
  extern __shared__ __align__(16) char shared[];
  const PermuteTiles& t = args.t;
  char* at = shared;
  const Tables x = carve_tables(t, at);
  T* const buffer = reinterpret_cast<T*>(at);
  fill(t, t.read_run, &TileAxis::from, x.read_run, x.to_run);
  fill(t, t.read_rest, &TileAxis::from, x.read_rest, x.to_rest);
  fill(t, t.write_run, &TileAxis::to, nullptr, x.from_run);
  fill(t, t.write_rest, &TileAxis::to, x.write_rest, x.from_rest);
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t tile = blockIdx.x; tile < t.tiles; tile += gridDim.x) {
    __syncthreads();  // the tile before has been written
    if (thread < t.axis_count) x.extents[thread] = t.axis[thread].extent;
    __syncwarp();
    if (thread < 32) {
      int64_t from = 0, to = 0;
      for (int s = thread; s < t.step_count; s += 32) {
        const TileSteps& step = t.step[s];
        const int64_t index = tile / args.below[s] % step.count;
        from += index * step.from, to += index * step.to;
        if (step.axis >= 0 && index == step.count - 1) x.extents[step.axis] = step.short_extent;
      }
      for (int lanes = 16; lanes > 0; lanes /= 2) {
        from += __shfl_xor_sync(~0u, from, lanes);
        to += __shfl_xor_sync(~0u, to, lanes);
      }
      if (thread == 0) x.offset[0] = from, x.offset[1] = to;
    }
    __syncthreads();
    const T* const from = static_cast<const T*>(args.from) + x.offset[0];
    T* const to = static_cast<T*>(args.to) + x.offset[1];
    each(length(t, t.read_run, x.extents), length(t, t.read_rest, x.extents),
         [&](int e, int r) { buffer[x.to_run[e] + x.to_rest[r]] = from[x.read_run[e] + x.read_rest[r]]; });
    __syncthreads();
    each(length(t, t.write_run, x.extents), length(t, t.write_rest, x.extents),
         [&](int e, int r) { to[e + x.write_rest[r]] = buffer[x.from_run[e] + x.from_rest[r]]; });
  }
}

}  // namespace

void permute(const PermuteParams& p, const Target& target) {
  visit_item(p.item, [&]<class T>() {
    constexpr int32_t kRunBytes = 256, kTileBytes = 1 << 14, kMostElements = 1 << 12;
    constexpr auto kItem = static_cast<int32_t>(sizeof(T));
    PermuteArgs args{
        PermuteTiler(p, {kRunBytes / std::max(kItem, 2), std::min(kTileBytes / kItem, kMostElements), true}).make(),
        p.from,
        p.to,
        {}};
    int64_t below = 1;
    for (int s = args.t.step_count - 1; s >= 0; below *= args.t.step[s--].count) args.below[s] = below;
    char* end = nullptr;
    carve_tables(args.t, end);
    const size_t shared =
        static_cast<size_t>(reinterpret_cast<uintptr_t>(end)) + static_cast<size_t>(args.t.buffer_size) * sizeof(T);
    constexpr int kBlocks = 8;  // on a multiprocessor: as many as there are threads for
    launch<&permute_tiles<T>>(target, std::min<int64_t>(args.t.tiles, kBlocks * target.facts->multiprocessors),
                              kThreads, shared, args);
  });
}

}  // namespace tropical::cuda
