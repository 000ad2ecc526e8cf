// Copies with axes in another order on the device: a block moves tiles through shared memory, so that both arrays are
// read and written in runs.
#include "heuristics.h"
#include "launch.cuh"
#include "permute_tiles.h"
#include "product.h"
#include "stages.cuh"

namespace tropical::cuda {
namespace {

constexpr int kThreads = 256, kBlocks = 4;  // blocks of a multiprocessor

struct PermuteArgs {
  PermuteTiles t;
  const void* from;
  void* to;
  int64_t below[kMaxPermuteAxes];  // tiles that one step along an axis of tiles spans
};

// Where an element of a run, or a run, lies in an array and in the buffer.
template <class Offset>
struct Place {
  Offset array;
  int32_t buffer;
};

// A tile: its place in either array, and how long its lists are.
template <class Offset>
struct Tile {
  Offset from, to;
  int read_run, read_rest, write_run, write_rest;
};

// What a block has in shared memory. Offsets in a tile are the same in all tiles.
template <class T, class Offset>
struct Shared {
  Place<Offset>*read_run, *read_rest, *write_run, *write_rest;
  Tile<Offset>* tile;  // two in turn
  int* extents;        // of the axes of a tile
  T* buffer;
  size_t bytes;

  TROPICAL_HD Shared(const PermuteTiles& t, char* memory) {
    char* at = memory;
    const auto carve = [&]<class X>(X*& made, int64_t count) {
      made = reinterpret_cast<X*>(at);
      at += (count * static_cast<int64_t>(sizeof(X)) + 15) / 16 * 16;
    };
    carve(read_run, t.length(t.read_run)), carve(read_rest, t.length(t.read_rest));
    carve(write_run, t.length(t.write_run)), carve(write_rest, t.length(t.write_rest));
    carve(tile, 2), carve(extents, TileList::kMost), carve(buffer, t.buffer_size);
    bytes = static_cast<size_t>(at - memory);
  }
};

template <class Offset>
__device__ void fill(const PermuteTiles& t, const TileList& list, int64_t TileAxis::*step, Place<Offset>* places) {
  for (int i = static_cast<int>(threadIdx.x); i < t.length(list); i += kThreads)
    places[i] = {static_cast<Offset>(t.offset(list, i, step)), t.offset(list, i, &TileAxis::buffer)};
}

// By one warp.
template <class Offset>
__device__ void locate(const PermuteArgs& args, Offset index, int* extents, Tile<Offset>& tile) {
  const PermuteTiles& t = args.t;
  const int lane = threadIdx.x % 32;
  if (lane < t.axis_count) extents[lane] = t.axis[lane].extent;
  __syncwarp();
  Offset from = 0, to = 0;
  for (int s = lane; s < t.step_count; s += 32) {
    const TileSteps& step = t.step[s];
    const Offset at = index / static_cast<Offset>(args.below[s]) % static_cast<Offset>(step.count);
    from += at * static_cast<Offset>(step.from), to += at * static_cast<Offset>(step.to);
    if (step.axis >= 0 && at == static_cast<Offset>(step.count) - 1) extents[step.axis] = step.short_extent;
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    from += __shfl_xor_sync(~0u, from, lanes);
    to += __shfl_xor_sync(~0u, to, lanes);
  }
  __syncwarp();
  // The last axis of a list may be cut short.
  const auto length = [&](const TileList& list) {
    int n = 1;
    for (int i = 0; i < list.count; ++i) n *= i + 1 < list.count ? t.axis[list.axis[i]].extent : extents[list.axis[i]];
    return n;
  };
  if (lane == 0) tile.from = from, tile.to = to;
  if (lane == 1) tile.read_run = length(t.read_run);
  if (lane == 2) tile.read_rest = length(t.read_rest);
  if (lane == 3) tile.write_run = length(t.write_run);
  if (lane == 4) tile.write_rest = length(t.write_rest);
  __syncwarp();  // before extents are those of another tile
}

// How the threads of a block lie over runs of so many vectors: a warp goes along them, or across them where they are
// short.
struct Threads {
  int along, across, lanes, lines;
  __device__ explicit Threads(int run) {
    lanes = 32;
    while (lanes > 1 && lanes / 2 >= run) lanes /= 2;
    along = static_cast<int>(threadIdx.x) % lanes, across = static_cast<int>(threadIdx.x) / lanes;
    lines = kThreads / lanes;
  }
};

// move(position in a run, runs that follow each other by `lines`) for all vectors of a tile; kAtOnce runs or one.
template <int kVector, class F>
__device__ void each(const Threads& threads, int run, int rest, F move) {
  constexpr int kAtOnce = 4;
  for (int e = threads.along * kVector; e < run; e += threads.lanes * kVector) {
    int r = threads.across;
    for (; r + (kAtOnce - 1) * threads.lines < rest; r += kAtOnce * threads.lines)
      move.template operator()<kAtOnce>(e, r);
    for (; r < rest; r += threads.lines) move.template operator()<1>(e, r);
  }
}

// Vectors are read and written whole; in the buffer their elements are apart.
template <class T, int kVector, class Offset>
__global__ void __launch_bounds__(kThreads, kBlocks) permute_tiles(const __grid_constant__ PermuteArgs args) {
  using Values = Vector<T, kVector>;
  extern __shared__ __align__(16) char memory[];
  const PermuteTiles& t = args.t;
  const Shared<T, Offset> x(t, memory);
  fill(t, t.read_run, &TileAxis::from, x.read_run), fill(t, t.read_rest, &TileAxis::from, x.read_rest);
  fill(t, t.write_run, &TileAxis::to, x.write_run), fill(t, t.write_rest, &TileAxis::to, x.write_rest);
  const Threads reading(t.length(t.read_run) / kVector), writing(t.length(t.write_run) / kVector);
  const auto tiles = static_cast<Offset>(t.tiles), first = static_cast<Offset>(blockIdx.x),
             blocks = static_cast<Offset>(gridDim.x);
  int turn = 0;
  if (threadIdx.x < 32) locate(args, first, x.extents, x.tile[0]);
  for (Offset index = first; index < tiles; index += blocks, turn ^= 1) {
    __syncthreads();  // the tile before has been written, and this one found
    const Tile<Offset> tile = x.tile[turn];
    const T* const from = static_cast<const T*>(args.from) + tile.from;
    T* const to = static_cast<T*>(args.to) + tile.to;
    each<kVector>(reading, tile.read_run, tile.read_rest, [&]<int kRuns>(int e, int r) {
      Values values[kRuns];
      int32_t at[kRuns];
#pragma unroll
      for (int u = 0; u < kRuns; ++u) {
        const Place<Offset> run = x.read_rest[r + u * reading.lines];
        values[u] = *reinterpret_cast<const Values*>(from + x.read_run[e].array + run.array);
        at[u] = run.buffer;
      }
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        T* const column = x.buffer + x.read_run[e + v].buffer;
#pragma unroll
        for (int u = 0; u < kRuns; ++u) column[at[u]] = values[u].x[v];
      }
    });
    __syncthreads();
    if (threadIdx.x < 32 && index + blocks < tiles) locate(args, index + blocks, x.extents, x.tile[turn ^ 1]);
    each<kVector>(writing, tile.write_run, tile.write_rest, [&]<int kRuns>(int e, int r) {
      Values values[kRuns];
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const T* const column = x.buffer + x.write_run[e + v].buffer;
#pragma unroll
        for (int u = 0; u < kRuns; ++u) values[u].x[v] = column[x.write_rest[r + u * writing.lines].buffer];
      }
#pragma unroll
      for (int u = 0; u < kRuns; ++u)
        *reinterpret_cast<Values*>(to + e + x.write_rest[r + u * writing.lines].array) = values[u];
    });
  }
}

// Whether all runs of all tiles are whole vectors in both arrays, and lie where vectors may.
bool whole_vectors(const PermuteTiles& t, const void* from, const void* to, int vector, size_t item) {
  const auto fits = [&](int64_t offset) { return offset % vector == 0; };
  const auto run_fits = [&](const TileList& run, int64_t TileAxis::*step) {
    int64_t length = 1;
    for (int i = 0; i < run.count; ++i) {
      const TileAxis& axis = t.axis[run.axis[i]];
      if (axis.*step != length && (!fits(length) || !fits(axis.*step))) return false;
      // Cut short, the last axis leaves this many.
      for (int s = 0; s < t.step_count && i + 1 == run.count; ++s)
        if (t.step[s].axis == run.axis[i] && !fits(length * t.step[s].short_extent)) return false;
      length *= axis.extent;
    }
    return fits(length);
  };
  const auto rest_fits = [&](const TileList& rest, int64_t TileAxis::*step) {
    return std::all_of(rest.axis, rest.axis + rest.count, [&](int i) { return fits(t.axis[i].*step); });
  };
  return (reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % (vector * item) == 0 &&
         run_fits(t.read_run, &TileAxis::from) && run_fits(t.write_run, &TileAxis::to) &&
         rest_fits(t.read_rest, &TileAxis::from) && rest_fits(t.write_rest, &TileAxis::to) &&
         std::all_of(t.step, t.step + t.step_count, [&](const TileSteps& s) { return fits(s.from) && fits(s.to); });
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
    int64_t span = 0;
    for (int d = 0; d < p.ndim; ++d) span += (p.size[d] - 1) * std::abs(p.stride[d]);
    const int64_t size = below * args.t.length(args.t.read_run) * args.t.length(args.t.read_rest);
    const auto run = [&]<int kVector, class Offset>() {
      launch<&permute_tiles<T, kVector, Offset>>(
          target, std::min<int64_t>(args.t.tiles, kBlocks * target.facts->multiprocessors), kThreads,
          Shared<T, Offset>(args.t, nullptr).bytes, args);
    };
    constexpr int kVector = std::max(1, std::min(4, 16 / kItem));
    const bool vectors = whole_vectors(args.t, p.from, p.to, kVector, sizeof(T));
    // Offsets, and indices of tiles one round ahead, fit in 32 bits.
    const bool small = std::max(size, span) < int64_t{1} << 30;
    if (vectors)
      small ? run.template operator()<kVector, int32_t>() : run.template operator()<kVector, int64_t>();
    else
      small ? run.template operator()<1, int32_t>() : run.template operator()<1, int64_t>();
  });
}

}  // namespace tropical::cuda
