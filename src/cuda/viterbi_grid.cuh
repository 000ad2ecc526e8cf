// Viterbi with one matrix for all, f32: one kernel walks along all sequences. A group of blocks holds the matrix in
// shared memory, some columns each, and exchanges the values of a step through the history. Each block has two teams
// of warps with sequences of their own, which compute in turn: while one team hands over its values and waits for those
// of the other blocks, the other one has the arithmetic units.
#pragma once
#include <optional>

#include "stages.cuh"
#include "trellis.cuh"

namespace tropical::cuda {

// A warp's lanes are 2 groups of rows (sequences) x 2 halves of the block's columns x 8 parts of k; the warps of a team
// divide k in chunks of 32. A lane has kRows x kCols results: as many as registers hold, since shared memory gives 32
// values a clock and 64 pairs of operations want (kRows + kCols) / (kRows kCols) each.
struct GridWalk {
  static constexpr int kTeams = 2, kTeamWarps = 4, kTeamThreads = 32 * kTeamWarps, kThreads = kTeams * kTeamThreads;
  static constexpr int kParts = 8, kChunk = 4 * kParts;  // of k: of a chunk, elements
  static constexpr int kHalf = 12, kSlice = 2 * kHalf;   // most columns of a half, and both
  static constexpr int kMostColumns = kSlice;

  int rows = 0;     // of a tile of sequences, which a team takes at once
  int groups = 0;   // of blocks
  int blocks = 0;   // of a group
  int columns = 0;  // of a block
  size_t shared = 0;

  // A stage holds a line of 128 bytes for each row, in vectors of 4 values along k. Few rows take little time, so all
  // of a step is asked for at once.
  static constexpr int stages(int rows) { return rows > 4 ? 4 : 12; }
  static constexpr int ring_floats(int rows) { return stages(rows) * rows * kChunk; }
};

// None where the matrix does not fit.
inline std::optional<GridWalk> plan_grid_walk(int64_t batch, int64_t states, const DeviceFacts& device) {
  if (device.compute < 80) return {};
  constexpr double kExchange = 4000;  // clocks from a team's last product to the first one of the next step
  const int64_t row = ceil_div(states, GridWalk::kChunk) * GridWalk::kChunk;
  GridWalk best;
  double least = 0;
  const int rows = batch <= 8 ? 4 : 16;
  const int64_t rings = int64_t{GridWalk::kTeams} * GridWalk::kTeamWarps * GridWalk::ring_floats(rows);
  const size_t shared = sizeof(float) * static_cast<size_t>(row * GridWalk::kSlice + rings);
  if (shared > static_cast<size_t>(device.shared_bytes)) return {};
  const int64_t tiles = ceil_div(batch, rows);
  for (int64_t groups = 1; groups <= std::min<int64_t>(tiles, device.multiprocessors); ++groups) {
    const int64_t columns = ceil_div(row, device.multiprocessors / groups);
    if (columns > GridWalk::kMostColumns) break;
    const int64_t teams = std::min<int64_t>(GridWalk::kTeams, ceil_div(tiles, groups));
    const auto work = static_cast<double>(rows * row * columns) / 64;
    const double step = std::max(static_cast<double>(teams) * work, work + kExchange);
    const double clocks = static_cast<double>(ceil_div(tiles, groups * GridWalk::kTeams)) * step;
    if (best.groups > 0 && clocks >= least) continue;
    least = clocks;
    best = {rows, static_cast<int>(groups), static_cast<int>(ceil_div(row, columns)), static_cast<int>(columns),
            shared};
  }
  return best.groups > 0 ? std::optional(best) : std::nullopt;
}

struct GridArgs {
  ViterbiParams p;
  GridWalk walk;
  int64_t row;
  float* history;  // (step, batch, row); step 0 is there
  int64_t step_size;
  const float* matrix;  // (from, row of to)
  unsigned* arrived;    // for each tile, at first 0: blocks that have finished a step, all steps together
};

// Barriers of a block: 1 and 2 are those of a team's threads; at 3 and 4 a team waits for its turn, which the other one
// gives it.
__device__ inline void sync_team(int team) {
  asm volatile("bar.sync %0, %1;" ::"r"(1 + team), "n"(GridWalk::kTeamThreads) : "memory");
}
__device__ inline void take_turn(int team) {
  asm volatile("bar.sync %0, %1;" ::"r"(3 + team), "n"(GridWalk::kThreads) : "memory");
}
__device__ inline void give_turn(int team) {
  asm volatile("bar.arrive %0, %1;" ::"r"(3 + team), "n"(GridWalk::kThreads) : "memory");
}

// One more block has finished a step: all that its threads have written before the barrier in front is visible.
__device__ inline void announce(unsigned* counter) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
  asm volatile("fence.acq_rel.gpu;\n\tred.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
#endif
}
// Waits until so many have, in all; counters may wrap.
__device__ inline void await(const unsigned* counter, unsigned wanted) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
  unsigned seen;
  do {
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
  } while (static_cast<int>(seen - wanted) < 0);
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

// Where the element k of a chunk lies in a slice: elements that lanes read at once are neighbours.
__device__ constexpr int slice_position(int k) { return k % 4 * GridWalk::kParts + k / 4; }

// One team of one block.
template <int kRows, int kCols>
class Team {
  using G = GridWalk;
  using Core = FloatCore<MaxPlus, true>;
  static constexpr int kTileRows = 2 * kRows, kStage = kTileRows * G::kParts;
  static constexpr int kStages = G::stages(kTileRows), kRing = G::ring_floats(kTileRows), kCopies = kTileRows / 4;
  static constexpr int kNext = G::kTeamWarps * G::kChunk;  // elements from a warp's chunk to its next

 public:
  __device__ Team(const GridArgs& args, const float* matrix_slice, float* rings, int first_column)
      : x(args),
        first(first_column),
        team(threadIdx.x / G::kTeamThreads),
        thread(threadIdx.x % G::kTeamThreads),
        lane(threadIdx.x % 32),
        chunk0((thread / 32 + 2 * team) % G::kTeamWarps),
        part(lane / 4),
        slice(matrix_slice + (chunk0 * G::kChunk + part) * G::kSlice + lane % 2 * G::kHalf),
        partials(rings + team * G::kTeamWarps * kRing),
        ring(reinterpret_cast<float4*>(partials + thread / 32 * kRing)) {}

  // All steps of this team's tile of a round.
  __device__ void walk(int64_t round, int group_of_blocks) {
    const ViterbiParams& p = x.p;
    const auto tile_of = [&](int t) { return (round * G::kTeams + t) * x.walk.groups + group_of_blocks; };
    const int64_t tile = tile_of(team), b0 = tile * kTileRows;
    const int64_t steps = steps_of(tile), turns = max(steps, steps_of(tile_of(1 - team)));

    // What this thread writes: some columns of one row.
    constexpr int kNeighbours = G::kTeamThreads / kTileRows,
                  kOutputs = (G::kMostColumns + kNeighbours - 1) / kNeighbours;
    const int out_row = thread / kNeighbours, out_column = thread % kNeighbours;
    const int64_t out_b = b0 + out_row, length = out_b < p.batch ? length_of(p, out_b) : 0;

    // What this lane copies: a vector of every fourth row. Eight lanes copy a line as it lies in memory: copies that
    // scatter a line are as slow as so many lines. Rows beyond the batch are left out, since all blocks would ask for
    // the same lines again and again.
    const float* from = x.history + (b0 + lane / G::kParts) * x.row + chunk0 * G::kChunk + lane % G::kParts * 4;
    count = static_cast<int>(min(p.batch - b0, int64_t{kTileRows}));

    float* to = x.history + out_b * x.row + first + out_column;
    int64_t at = out_b * p.emission.stride[0] + (first + out_column) * p.emission.stride[2];
    for (int64_t t = 1; t < turns; ++t) {
      if (t >= steps) {
        take_turn(team);
        give_turn(1 - team);
        continue;
      }
      if (thread == 0 && t > 1)
        await(x.arrived + tile, static_cast<unsigned>(t - 1) * static_cast<unsigned>(x.walk.blocks));
      sync_team(team);
      begin(from);
      at += p.emission.stride[1];
      to += x.step_size;
      unsigned emission[kOutputs];
#pragma unroll
      for (int q = 0; q < kOutputs; ++q) {
        const int c = out_column + q * kNeighbours;
        const bool counts = t < length && c < x.walk.columns && first + c < p.states;
        emission[q] = counts ? fetch(at + q * kNeighbours * p.emission.stride[2]) : 0;
      }
      float best[kRows][kCols];
      take_turn(team);
      multiply(best, from);
      give_turn(1 - team);
      share(best);
      sync_team(team);
#pragma unroll
      for (int q = 0; q < kOutputs; ++q) {
        const int c = out_column + q * kNeighbours;
        if (c >= x.walk.columns || first + c >= x.row || out_b >= p.batch) continue;
        const float v = gather(out_row, c) + value_of(emission[q]);
        to[q * kNeighbours] = first + c < p.states ? v : 0.0f;
      }
      sync_team(team);
      if (thread == 0) announce(x.arrived + tile);
      from += x.step_size;
    }
  }

 private:
  // The most that a sequence of a tile has.
  __device__ int64_t steps_of(int64_t tile) const {
    int64_t steps = 0;
    for (int64_t b = tile * kTileRows; b < min((tile + 1) * kTileRows, x.p.batch); ++b)
      steps = max(steps, length_of(x.p, b));
    return steps;
  }

  // An emission as it is stored, so that nothing waits for it yet.
  __device__ unsigned fetch(int64_t at) const {
    const void* data = x.p.emission.data;
    return x.p.dtype == DType::f32 ? static_cast<const unsigned*>(data)[at] : static_cast<const uint16_t*>(data)[at];
  }
  __device__ float value_of(unsigned stored) const {
    if (x.p.dtype == DType::f32) return __uint_as_float(stored);
    const auto bits = static_cast<uint16_t>(stored);
    return x.p.dtype == DType::f16 ? half_to_float(float16{bits}) : half_to_float(bfloat16{bits});
  }

  // This warp's part of the products, in the cheapest mode that has been right of late (see Mode).
  __device__ void multiply(float (&best)[kRows][kCols], const float* from) {
    constexpr int kPatience = 16;
    if (mode != Mode::value) {
      if (mode == Mode::negative ? run<Mode::negative>(best, from) : run<Mode::positive>(best, from)) return;
      patience = kPatience;
      begin(from);
    }
    run<Mode::value>(best, from);
    if (--patience > 0)
      mode = Mode::value;
    else
      mode = all_are<Mode::negative>(best)   ? Mode::negative
             : all_are<Mode::positive>(best) ? Mode::positive
                                             : Mode::value;
  }

  // Whether all results of the warp have the sign of a mode: then that mode has been right. Those of rows beyond the
  // batch are whatever they are.
  template <Mode kMode>
  __device__ bool all_are(const float (&best)[kRows][kCols]) const {
    if (kMode == Mode::value) return true;
    bool all = true;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      int bits = kMode == Mode::negative ? -1 : 0;
#pragma unroll
      for (int c = 0; c < kCols; ++c)
        bits = kMode == Mode::negative ? bits & __float_as_int(best[r][c]) : bits | __float_as_int(best[r][c]);
      all &= (kMode == Mode::negative ? bits < 0 : bits >= 0) || lane / 2 % 2 * kRows + (r ^ part % kRows) >= count;
    }
    return __all_sync(0xffffffffu, all);
  }

  __device__ int chunks() const { return static_cast<int>(x.row) / G::kChunk - chunk0; }  // from this warp's first on

  // In which place of its line a vector lies, so that no bank is met twice.
  __device__ static int place(int vector, int group) { return vector ^ 2 * group; }

  // Copies this lane's vectors of a chunk to a stage.
  __device__ void copy(const float* from, int stage) const {
    const int row = lane / G::kParts;
#pragma unroll
    for (int c = 0; c < kCopies; ++c) {
      const int group = kRows > 4 ? c / (kCopies / 2) : row / kRows;
      if (row + 4 * c < count)
        copy_async(ring + stage + (row + 4 * c) * G::kParts + place(lane % G::kParts, group), from + 4 * c * x.row);
    }
  }
  // The first chunks of a step are on their way.
  __device__ void begin(const float* from) const {
    __syncwarp();
#pragma unroll
    for (int s = 0; s < kStages - 1; ++s) {
      if (chunks() > s * G::kTeamWarps) copy(from + s * kNext, s * kStage);
      commit_copies();
    }
  }

  template <Mode kMode>
  __device__ bool run(float (&best)[kRows][kCols], const float* from) {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int c = 0; c < kCols; ++c) best[r][c] = Core::worst();
    // Row r of a group is looked for in place r ^ part, so that lanes know without asking which of their results to
    // keep (see share).
    const int group = lane / 2 % 2;
    const float4* const read = ring + group * kRows * G::kParts + place(part, group);
    int rows[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) rows[r] = (r ^ part % kRows) * G::kParts;
    const float* a = slice;
    int here = 0, before = (kStages - 1) * kStage;
    for (int left = chunks(); left > 0; left -= G::kTeamWarps) {
      wait_copies<kStages - 2>();
      __syncwarp();
      if (left > (kStages - 1) * G::kTeamWarps) copy(from + (kStages - 1) * kNext, before);
      commit_copies();
      from += kNext;
      step<kMode>(best, read + here, rows, a);
      a += kNext * G::kSlice;
      before = here;
      here = here == (kStages - 1) * kStage ? 0 : here + kStage;
    }
    return all_are<kMode>(best);
  }

  template <Mode kMode>
  __device__ static void step(float (&best)[kRows][kCols], const float4* values, const int (&rows)[kRows],
                              const float* a) {
    float v[kRows][4];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 x4 = values[rows[r]];
      v[r][0] = x4.x, v[r][1] = x4.y, v[r][2] = x4.z, v[r][3] = x4.w;
    }
#pragma unroll
    for (int k = 0; k < 4; k += 2) {
      float y[2][G::kHalf];
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int c = 0; c < kCols; c += 4) {
          const auto y4 = *reinterpret_cast<const float4*>(a + slice_position(k + h) * G::kSlice + c);
          y[h][c] = y4.x, y[h][c + 1] = y4.y, y[h][c + 2] = y4.z, y[h][c + 3] = y4.w;
        }
#pragma unroll
      for (int r = 0; r < kRows; ++r)
#pragma unroll
        for (int c = 0; c < kCols; ++c) Core::template step<kMode>(v[r][k], y[0][c], v[r][k + 1], y[1][c], best[r][c]);
    }
  }

  // The lanes' parts of k together, into the ring, which is free by now.
  __device__ void share(float (&best)[kRows][kCols]) {
    const auto take = [&](float& mine, float given, int step) {
      mine = max_nan(mine, __shfl_xor_sync(0xffffffffu, given, step));
    };
    // best[r] is of row r ^ part: what a lane gives away is what the other one keeps.
#pragma unroll
    for (int bit = G::kParts / 2; bit > 0; bit /= 2)
#pragma unroll
      for (int r = 0; r < (bit < kRows ? bit : kRows); ++r)
#pragma unroll
        for (int c = 0; c < kCols; ++c) take(best[r][c], best[bit < kRows ? r + bit : r][c], 4 * bit);
    __syncwarp();
    const int row = lane / 2 % 2 * kRows + part % kRows;
    float* to = reinterpret_cast<float*>(ring) + row * G::kSlice + lane % 2 * G::kHalf;
    if (part < kRows)
#pragma unroll
      for (int c = 0; c < kCols; ++c) to[c] = best[0][c];
  }
  __device__ float gather(int row, int column) const {
    const float* from = partials + row * G::kSlice + (column < kCols ? column : column - kCols + G::kHalf);
    float best = from[0];
#pragma unroll
    for (int w = 1; w < G::kTeamWarps; ++w) best = max_nan(best, from[w * kRing]);
    return best;
  }

  const GridArgs& x;
  int first, team, thread, lane;
  int chunk0;          // the first of this warp's; those that have one more run on other schedulers in the other team
  int part;            // of k, of this lane
  int count = 0;       // of rows of the tile
  const float* slice;  // of the block's columns of the matrix, where this lane begins
  float* partials;     // of all warps
  float4* ring;        // of this warp
  Mode mode = Mode::negative;
  int patience = 0;
};

template <int kRows, int kCols>
__global__ void __launch_bounds__(GridWalk::kThreads, 1) walk_grid(const __grid_constant__ GridArgs x) {
  using G = GridWalk;
  extern __shared__ float4 grid_memory[];
  float* slice = reinterpret_cast<float*>(grid_memory);
  const int group = static_cast<int>(blockIdx.x) / x.walk.blocks;
  const int states = static_cast<int>(x.p.states), row = static_cast<int>(x.row);
  const int first = static_cast<int>(blockIdx.x) % x.walk.blocks * x.walk.columns;
  for (int at = threadIdx.x; at < row * G::kSlice; at += G::kThreads) {
    const int k = at / G::kSlice, c = at % G::kSlice % G::kHalf + at % G::kSlice / G::kHalf * kCols;
    // Columns beyond the last one repeat it; elements of k beyond the last one are worth nothing.
    const int j = min(first + min(c, x.walk.columns - 1), states - 1);
    const int chunk = k / G::kChunk * G::kChunk;
    slice[(chunk + slice_position(k % G::kChunk)) * G::kSlice + at % G::kSlice] =
        k < states ? x.matrix[static_cast<int64_t>(k) * row + j] : lowest<float>();
  }
  __syncthreads();
  Team<kRows, kCols> team(x, slice, slice + row * G::kSlice, first);
  const int64_t tiles = (x.p.batch + 2 * kRows - 1) / (2 * kRows);
  if (threadIdx.x >= G::kTeamThreads) give_turn(0);
  for (int64_t round = 0; round * G::kTeams * x.walk.groups + group < tiles; ++round) team.walk(round, group);
}

}  // namespace tropical::cuda
