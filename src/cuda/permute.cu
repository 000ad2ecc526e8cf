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
constexpr int kVectorBytes = 16;

// A list of a tile's axes, how many elements it has, and how many are left where its last axis is cut short.
struct List {
  TileList axes;
  int32_t length, cut_length;
  uint32_t cut_bit;  // of that axis
};

struct PermuteArgs {
  PermuteTiles t;
  List read_run, read_rest, write_run, write_rest;
  const void* from;
  void* to;
  int64_t below[kMaxPermuteAxes];  // tiles that one step along an axis of tiles spans
  // Bytes from the first element of a vector to the others in the buffer.
  int32_t read_part[kVectorBytes], write_part[kVectorBytes];
};

// Where a vector lies in an array, in elements, and in the buffer, in bytes.
template <class Offset>
struct Place {
  Offset array;
  int32_t buffer;
};

// A tile: its place in either array, and by bits which of its axes are cut short.
template <class Offset>
struct Tile {
  Offset from, to;
  uint32_t cut;
};

// The places of a list's elements 0, vector, 2 * vector...
template <class T, class Offset>
__device__ void fill(const PermuteTiles& t, const List& list, int vector, int64_t TileAxis::*step,
                     Place<Offset>* places) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < list.length / vector; i += kThreads) {
    Place<Offset> place{};
    int left = i * vector;
#pragma unroll 1
    for (int a = 0; a < list.axes.count; ++a) {
      const TileAxis& axis = t.axis[list.axes.axis[a]];
      const int at = left % axis.extent;
      left /= axis.extent;
      place.array += at * static_cast<Offset>(axis.*step);
      place.buffer += at * axis.buffer * static_cast<int32_t>(sizeof(T));
    }
    places[i] = place;
  }
}

// The vectors of a tile that a thread reads or writes, in order of runs: the same places in all tiles.
template <class T, int kVector, int kMoves, class Offset>
struct Moves {
  Place<Offset> at[kMoves];
  // By bits: the vectors of a whole tile, and those in what is left where runs or the list of runs are cut short.
  uint32_t whole = 0, in_run = 0, in_rest = 0;
  uint32_t run_bit, rest_bit;  // of a tile's cut

  // Finds them by tables of a run and of runs in shared memory, which is free again after the next barrier.
  __device__ Moves(const PermuteTiles& t, const List& run_list, const List& rest_list, int64_t TileAxis::*step,
                   Place<Offset>* table)
      : run_bit(run_list.cut_bit), rest_bit(rest_list.cut_bit) {
    const int run = run_list.length / kVector;
    Place<Offset>* const rest = table + run;
    __syncthreads();
    fill<T>(t, run_list, kVector, step, table), fill<T>(t, rest_list, 1, step, rest);
    __syncthreads();
    int along = static_cast<int>(threadIdx.x) % run, across = static_cast<int>(threadIdx.x) / run;
#pragma unroll
    for (int q = 0; q < kMoves; ++q) {
      const bool has = across < rest_list.length;
      const Place<Offset> a = has ? table[along] : Place<Offset>{}, b = has ? rest[across] : Place<Offset>{};
      at[q] = {a.array + b.array, a.buffer + b.buffer};
      whole |= uint32_t{has} << q;
      in_run |= uint32_t{along * kVector < run_list.cut_length} << q;
      in_rest |= uint32_t{across < rest_list.cut_length} << q;
      along += kThreads % run, across += kThreads / run;
      if (along >= run) along -= run, ++across;
    }
  }
  // By bits: the vectors that a tile has.
  __device__ uint32_t of(const Tile<Offset>& tile) const {
    return whole & (tile.cut & run_bit ? in_run : ~0u) & (tile.cut & rest_bit ? in_rest : ~0u);
  }
  // Where vector q lies in the buffer; as if this differed between tiles, or sums of it would fill all registers.
  __device__ int32_t buffer(int q) const {
    int32_t place = at[q].buffer;
    asm volatile("" : "+r"(place));
    return place;
  }
};

// By one warp.
template <class Offset>
__device__ void locate(const PermuteArgs& args, Offset index, Tile<Offset>& tile) {
  const PermuteTiles& t = args.t;
  Tile<Offset> sum{};
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int s = lane; s < t.step_count; s += 32) {
    const TileSteps& step = t.step[s];
    const Offset at = index / static_cast<Offset>(args.below[s]) % static_cast<Offset>(step.count);
    sum.from += at * static_cast<Offset>(step.from), sum.to += at * static_cast<Offset>(step.to);
    if (step.axis >= 0 && at == static_cast<Offset>(step.count) - 1) sum.cut |= uint32_t{1} << step.axis;
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    sum.from += __shfl_xor_sync(~0u, sum.from, lanes);
    sum.to += __shfl_xor_sync(~0u, sum.to, lanes);
    sum.cut |= __shfl_xor_sync(~0u, sum.cut, lanes);
  }
  if (lane == 0) tile = sum;
}

// A vector in registers, by elements. Elements of less than a word stay in words: each would fill a register.
template <class T, int kVector>
struct Packed {
  using Word = std::conditional_t<sizeof(T) < 4 && (kVector * sizeof(T) >= 4), uint32_t, T>;
  static constexpr int kPart = sizeof(Word) / sizeof(T);
  Vector<Word, kVector / kPart> words;

  __device__ T get(int v) const {
    if constexpr (kPart == 1)
      return words.x[v];
    else
      return static_cast<T>(words.x[v / kPart] >> (v % kPart * 8 * static_cast<int>(sizeof(T))));
  }
  __device__ void set(int v, T value) {
    if constexpr (kPart == 1)
      words.x[v] = value;
    else
      words.x[v / kPart] =
          (v % kPart == 0 ? 0 : words.x[v / kPart]) | uint32_t{value} << (v % kPart * 8 * static_cast<int>(sizeof(T)));
  }
};

// Vectors are read and written whole; in the buffer their elements are apart.
template <class T, int kVector, int kMoves, class Offset>
__global__ void __launch_bounds__(kThreads, kBlocks) permute_tiles(const __grid_constant__ PermuteArgs args) {
  using Values = Packed<T, kVector>;
  extern __shared__ __align__(16) char memory[];
  __shared__ Tile<Offset> located[2];
  const PermuteTiles& t = args.t;
  auto* const table = reinterpret_cast<Place<Offset>*>(memory);
  const Moves<T, kVector, kMoves, Offset> read(t, args.read_run, args.read_rest, &TileAxis::from, table),
      write(t, args.write_run, args.write_rest, &TileAxis::to, table);
  const auto tiles = static_cast<Offset>(t.tiles), first = static_cast<Offset>(blockIdx.x),
             blocks = static_cast<Offset>(gridDim.x);
  int turn = 0;
  if (threadIdx.x < 32) locate(args, first, located[0]);
  for (Offset index = first; index < tiles; index += blocks, turn ^= 1) {
    __syncthreads();  // the tile before has been written, and this one found
    const Tile<Offset> tile = located[turn];
    const T* const from = static_cast<const T*>(args.from) + tile.from;
    T* const to = static_cast<T*>(args.to) + tile.to;
    Values values[kMoves];
    const uint32_t reads = read.of(tile);
#pragma unroll
    for (int q = 0; q < kMoves; ++q)
      if (reads >> q & 1) values[q] = *reinterpret_cast<const Values*>(from + read.at[q].array);
#pragma unroll
    for (int q = 0; q < kMoves; ++q) {
      if (!(reads >> q & 1)) continue;
      const int32_t at = read.buffer(q);
#pragma unroll
      for (int v = 0; v < kVector; ++v) *reinterpret_cast<T*>(memory + at + args.read_part[v]) = values[q].get(v);
    }
    __syncthreads();
    if (threadIdx.x < 32 && index + blocks < tiles) locate(args, index + blocks, located[turn ^ 1]);
    const uint32_t writes = write.of(tile);
    // What a cut tile lacks is gathered too: what the buffer happens to have there.
#pragma unroll
    for (int q = 0; q < kMoves; ++q) {
      const int32_t at = write.buffer(q);
#pragma unroll
      for (int v = 0; v < kVector; ++v) values[q].set(v, *reinterpret_cast<const T*>(memory + at + args.write_part[v]));
    }
#pragma unroll
    for (int q = 0; q < kMoves; ++q)
      if (writes >> q & 1) *reinterpret_cast<Values*>(to + write.at[q].array) = values[q];
  }
}

List list_of(const PermuteTiles& t, const TileList& axes) {
  List list{axes, t.length(axes), t.length(axes), 0};
  if (axes.count == 0) return list;
  const int last = axes.axis[axes.count - 1];
  list.cut_length = list.length / t.axis[last].extent * t.axis[last].short_extent;
  list.cut_bit = uint32_t{1} << last;
  return list;
}

// Whether all runs of all tiles are whole vectors in both arrays, and lie where vectors may.
bool whole_vectors(const PermuteTiles& t, const void* from, const void* to, int vector, size_t item) {
  const auto fits = [&](const TileList& run, const TileList& rest, int64_t TileAxis::*step) {
    int32_t length = 1;
    for (int i = 0; i < run.count; ++i) {
      const TileAxis& axis = t.axis[run.axis[i]];
      if (length < vector) {
        // Part of a vector: contiguous, whole in all tiles, and no vector ends in it.
        if (axis.*step != length || axis.short_extent != axis.extent || length * axis.extent > vector) return false;
        length *= axis.extent;
      } else if (axis.*step % vector != 0) {
        return false;
      }
    }
    return length == vector &&
           std::all_of(rest.axis, rest.axis + rest.count, [&](int i) { return t.axis[i].*step % vector == 0; });
  };
  return (reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % (vector * item) == 0 &&
         fits(t.read_run, t.read_rest, &TileAxis::from) && fits(t.write_run, t.write_rest, &TileAxis::to) &&
         std::all_of(t.step, t.step + t.step_count,
                     [&](const TileSteps& s) { return s.from % vector == 0 && s.to % vector == 0; });
}

template <class T, int kVector, int kMoves>
bool permute_in_tiles(const PermuteParams& p, const Target& target) {
  constexpr auto kItem = static_cast<int32_t>(sizeof(T));
  constexpr int32_t kMost = kThreads * kVector * kMoves;
  constexpr int32_t kRun = int32_t{1} << (std::bit_width(static_cast<uint32_t>(kMost)) - 1) / 2;
  PermuteArgs args{PermuteTiler(p, {kRun, kMost, kVector, kItem}).make(), {}, {}, {}, {}, p.from, p.to, {}, {}, {}};
  const PermuteTiles& t = args.t;
  if (kVector > 1 && !whole_vectors(t, p.from, p.to, kVector, sizeof(T))) return false;
  args.read_run = list_of(t, t.read_run), args.read_rest = list_of(t, t.read_rest);
  args.write_run = list_of(t, t.write_run), args.write_rest = list_of(t, t.write_rest);
  int64_t below = 1;
  for (int s = t.step_count - 1; s >= 0; below *= t.step[s--].count) args.below[s] = below;
  for (int v = 0; v < kVector; ++v) {
    args.read_part[v] = t.offset(t.read_run, v, &TileAxis::buffer) * kItem;
    args.write_part[v] = t.offset(t.write_run, v, &TileAxis::buffer) * kItem;
  }
  int64_t span = 0;
  for (int d = 0; d < p.ndim; ++d) span += (p.size[d] - 1) * std::abs(p.stride[d]);
  const int64_t size = below * args.read_run.length * args.read_rest.length;
  const auto run = [&]<class Offset>() {
    const auto table = [](const List& along, const List& rest) {
      return static_cast<size_t>(along.length / kVector + rest.length) * sizeof(Place<Offset>);
    };
    launch<&permute_tiles<T, kVector, kMoves, Offset>>(
        target, std::min<int64_t>(t.tiles, kBlocks * target.facts->multiprocessors), kThreads,
        std::max({static_cast<size_t>(t.buffer_size) * sizeof(T), table(args.read_run, args.read_rest),
                  table(args.write_run, args.write_rest)}),
        args);
  };
  // Offsets, and indices of tiles one round ahead, fit in 32 bits.
  if (std::max(size, span) < int64_t{1} << 30)
    run.template operator()<int32_t>();
  else
    run.template operator()<int64_t>();
  return true;
}

}  // namespace

void permute(const PermuteParams& p, const Target& target) {
  visit_item(p.item, [&]<class T>() {
    constexpr int kVector = kVectorBytes / sizeof(T);
    if (permute_in_tiles<T, kVector, 4>(p, target)) return;
    if constexpr (kVector > 1) permute_in_tiles<T, 1, 8>(p, target);
  });
}

}  // namespace tropical::cuda
