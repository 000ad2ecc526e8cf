// The fast kernels' loop over k: stages of both operands in shared memory, results in registers.
#pragma once
#include <algorithm>

#include "core_ops.cuh"
#include "stages.cuh"

namespace tropical::cuda {

// What the loop needs of one block: operands at their member of the batch, pitches in elements of T, slots of k.
template <class T>
struct LoopArgs {
  const T* a;
  const T* b;
  int a_pitch, b_pitch;
  int row0, col0, rows, cols;
  int k;
};

// What becomes of argmax: not wanted; chunk ids for the recovery pass; indices at once, from operands that have stayed
// in shared memory.
enum class Track { values, chunks, indices };

// With argmax: ids of chunks of k, two in a register, from which indices are recovered.
template <class Core, class Tile, Contiguous kA, Contiguous kB, Track kTrack>
class Mainloop {
 public:
  using T = typename Core::T;
  static constexpr bool kWrapVector = kA == Contiguous::k || kB == Contiguous::k;
  static constexpr int kRows = Tile::kRows, kCols = Tile::kCols;
  static constexpr bool kArgmax = kTrack != Track::values, kKeeps = kTrack == Track::indices;
  static constexpr bool kPacked = kTrack == Track::chunks;  // two chunk ids in a register
  // Short chunks: cheaper to keep -0 out of the candidates than to look twice at what has improved.
  static constexpr bool kCleans = kArgmax && Tile::kChunk <= 4;
  // Not for large tiles, which lose more by longer code (with it i32 n = 4096 took 4.66 ms instead of 4.60).
  static constexpr bool kQuick = Tile::kGroups > 1 && kTrack != Track::chunks;
  using StagesA = Stages<T, Tile, Tile::kM, kA, kWrapVector, kKeeps, kQuick>;
  using StagesB = Stages<T, Tile, Tile::kN, kB, kWrapVector, false, kQuick>;
  static constexpr int kIdBytes = !kArgmax ? 0 : kPacked ? 2 : 4;
  static constexpr int kMergeBytes = Tile::kGroups / 2 * Tile::kM * Tile::kN * (static_cast<int>(sizeof(T)) + kIdBytes);
  // Where groups have left room for it, all threads of the block look for indices.
  static constexpr int kSpreadPitch = Tile::kN + 1;
  static constexpr int kSpreadBytes = Tile::kGroups > 1
                                          ? Tile::kM* kSpreadPitch* static_cast<int>(sizeof(T) + sizeof(int))
                                          : 0;
  // Shared memory for `slots` of k.
  static size_t shared_bytes(int slots) {
    const int stages = std::min((slots + Tile::kK - 1) / Tile::kK, Tile::kStages);
    const int operands = stages * (StagesA::kSize + StagesB::kSize) * static_cast<int>(sizeof(T));
    return static_cast<size_t>(kKeeps ? operands + std::max(kMergeBytes, kSpreadBytes)
                                      : std::max(operands, kMergeBytes));
  }

  T best[kRows][kCols];
  uint32_t ids[kArgmax ? kRows : 1][kPacked ? kCols / 2 : kArgmax ? kCols : 1];

  __device__ __forceinline__ Mainloop(unsigned char* shared, const LoopArgs<T>& args)
      : args_(args),
        stages_((args.k + Tile::kK - 1) / Tile::kK),
        a_(reinterpret_cast<T*>(shared)),
        b_(a_ + min(stages_, Tile::kStages) * StagesA::kSize) {
    const int thread = static_cast<int>(threadIdx.x);
    group_ = thread / Tile::kGroupThreads;
    const int warp = thread % Tile::kGroupThreads / 32, lane = thread % 32;
    constexpr int kWarpsAcross = Tile::kN / (8 * kCols);
    // In units of register vectors along lines, of lines along k.
    first_row_ = warp / kWarpsAcross * (kA == Contiguous::k ? 4 * kRows : 4 * kRows / StagesA::kVector) + lane / 8;
    first_col_ = warp % kWarpsAcross * (kB == Contiguous::k ? 8 * kCols : 8 * kCols / StagesB::kVector) + lane % 8;
  }
  __device__ int group() const { return group_; }
  __device__ int row(int i) const { return StagesA::template line<4>(first_row_, i); }
  __device__ int col(int j) const { return StagesB::template line<8>(first_col_, j); }
  __device__ uint32_t id(int i, int j) const { return kPacked ? half_of(ids[i][j / 2], j) : ids[i][j]; }

  // Calls f(row, col, value, index) for every output of the tile, neighbouring threads at neighbouring columns; all
  // threads take part.
  template <class F>
  __device__ __forceinline__ void for_each_index(F f) {
    T* values = b_ + min(stages_, Tile::kStages) * StagesB::kSize;
    auto* chunks = reinterpret_cast<int*>(values + Tile::kM * kSpreadPitch);
    __syncthreads();
    if (group_ == 0)
      each([&](int i, int j) {
        values[row(i) * kSpreadPitch + col(j)] = best[i][j];
        chunks[row(i) * kSpreadPitch + col(j)] = static_cast<int>(id(i, j));
      });
    __syncthreads();
#pragma unroll
    for (int e = 0; e < Tile::kM * Tile::kN; e += Tile::kThreads) {
      const int o = e + static_cast<int>(threadIdx.x), r = o / Tile::kN, c = o % Tile::kN;
      const T value = values[r * kSpreadPitch + c];
      f(r, c, value, first_match(r, c, value, static_cast<uint32_t>(chunks[r * kSpreadPitch + c])));
    }
  }

  // The first k of a chunk whose candidate is the result, among operands still in shared memory (slots beyond the end
  // repeat earlier ones). Neighbours begin at different steps: in different banks.
  __device__ __forceinline__ int first_match(int row, int col, T value, uint32_t chunk) const {
    constexpr int kFours = Tile::kChunk / 4;
    const int k0 = static_cast<int>(chunk) * Tile::kChunk;
    int found = Tile::kChunk;
#pragma unroll
    for (int q = 0; q < kFours; ++q) {
      const int step = (q + col) % kFours * 4;
      T x[4], y[4];
      StagesA::four(a_, row, k0 + step, x);
      StagesB::four(b_, col, k0 + step, y);
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const T t = Core::candidate(x[u], y[u]);
        if (t == value || t != t) found = min(found, step + u);
      }
    }
    return k0 + found;
  }

  __device__ __forceinline__ void run() {
    each([&](int i, int j) {
      best[i][j] = Core::worst();
      if constexpr (kArgmax) ids[i][kPacked ? j / 2 : j] = 0;
    });
#pragma unroll
    for (int t = 0; t < Tile::kStages - 1; ++t) fetch(t);
    if constexpr (Core::kModes && kThreeInputMax)
      run_modes();
    else
      for (int t = 0; t < stages_; ++t) {
        arrive(t);
        chunk<Mode::value>(t);
      }
    merge_groups();
  }

 private:
  template <class F>
  __device__ __forceinline__ static void each(F f) {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kCols; ++j) f(i, j);
  }

  __device__ __forceinline__ void fetch(int t) {
    if (t < stages_) {
      const int s = t % Tile::kStages;
      StagesA::load(a_ + s * StagesA::kSize, args_.a, args_.a_pitch, args_.row0, args_.rows, t * Tile::kK, args_.k);
      StagesB::load(b_ + s * StagesB::kSize, args_.b, args_.b_pitch, args_.col0, args_.cols, t * Tile::kK, args_.k);
    }
    commit_copies();
  }
  // Stage t is in shared memory for all, and the one before it is free to be filled.
  __device__ __forceinline__ void arrive(int t) {
    wait_copies<Tile::kStages - 2>();
    __syncthreads();
    fetch(t + Tile::kStages - 1);
  }

  template <Mode kMode>
  __device__ __forceinline__ void steps(int t, int begin, int end) {
    const int s = t % Tile::kStages;
    const T* a = a_ + s * StagesA::kSize;
    const T* b = b_ + s * StagesB::kSize;
    constexpr int kUnroll = (kMode == Mode::value      ? Tile::kUnrollValue
                             : kMode == Mode::positive ? Tile::kUnrollPositive
                                                       : Tile::kUnrollNegative) /
                            2;
#pragma unroll kUnroll
    for (int k = begin; k < end; k += 2) {
      T x[2][kRows], y[2][kCols];
      StagesA::template read<kRows, 4>(a, first_row_, k, x);
      StagesB::template read<kCols, 8>(b, first_col_, k, y);
      if constexpr (kCleans) {
#pragma unroll
        for (int j = 0; j < kCols; ++j) y[0][j] = Core::cleaned(y[0][j]), y[1][j] = Core::cleaned(y[1][j]);
        each([&](int i, int j) { Core::step_cleaned(x[0][i], y[0][j], x[1][i], y[1][j], best[i][j]); });
      } else {
        each([&](int i, int j) { Core::template step<kMode>(x[0][i], y[0][j], x[1][i], y[1][j], best[i][j]); });
      }
    }
  }

  // This group's slots of stage t.
  template <Mode kMode>
  __device__ __forceinline__ void chunk(int t) {
    const int begin = group_ * Tile::kGroupSlots;
    if constexpr (!kArgmax) {
      steps<kMode>(t, begin, begin + Tile::kGroupSlots);
    } else {
#pragma unroll
      for (int c = 0; c < Tile::kGroupSlots; c += Tile::kChunk) {
        each([&](int i, int j) { old_[i][j] = best[i][j]; });
        steps<kMode>(t, begin + c, begin + c + Tile::kChunk);
        if constexpr (kMode != Mode::negative) remember<kMode>((t * Tile::kK + begin + c) / Tile::kChunk);
      }
    }
  }

  // Ids of the outputs that this chunk improved. By value, -0 to +0 is no improvement; the integer modes never see one.
  template <Mode kMode>
  __device__ __forceinline__ void remember(int chunk) {
    const auto id = static_cast<uint32_t>(chunk);
    each([&](int i, int j) {
      bool improved = __float_as_uint(best[i][j]) != __float_as_uint(old_[i][j]);
      if constexpr (kMode == Mode::value && !kCleans) improved = improved && !(best[i][j] == old_[i][j]);
      if (improved) set_id(i, j, id);
    });
  }
  __device__ static uint32_t half_of(uint32_t word, int j) { return j & 1 ? word >> 16 : word & 0xffffu; }
  __device__ __forceinline__ void set_id(int i, int j, uint32_t id) {
    if constexpr (kPacked)
      ids[i][j / 2] = j & 1 ? __byte_perm(ids[i][j / 2], id << 16, 0x7610) : __byte_perm(ids[i][j / 2], id, 0x3254);
    else
      ids[i][j] = id;
  }

  // Of all results the bits that any (or all) of them have. Row by row, for short chains of instructions, where
  // registers are left (in one chain n = 4096 of negative data takes 4.53 ms instead of 4.73).
  template <class F>
  __device__ __forceinline__ uint32_t bits_of_all(F combine) const {
    if constexpr (kRows * kCols >= 64) {
      uint32_t bits = __float_as_uint(best[0][0]);
      each([&](int i, int j) { bits = combine(bits, __float_as_uint(best[i][j])); });
      return bits;
    } else {
      uint32_t of_row[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        of_row[i] = __float_as_uint(best[i][0]);
#pragma unroll
        for (int j = 1; j < kCols; ++j) of_row[i] = combine(of_row[i], __float_as_uint(best[i][j]));
      }
#pragma unroll
      for (int half = kRows / 2; half > 0; half /= 2)
#pragma unroll
        for (int i = 0; i < half; ++i) of_row[i] = combine(of_row[i], of_row[i + half]);
      return of_row[0];
    }
  }
  __device__ __forceinline__ bool any_negative() const {
    return __any_sync(~0u, bits_of_all([](uint32_t x, uint32_t y) { return x | y; }) >> 31);
  }
  __device__ __forceinline__ bool all_negative() const {
    return __all_sync(~0u, bits_of_all([](uint32_t x, uint32_t y) { return x & y; }) >> 31);
  }

  // Each warp chooses for itself. The first two candidates say where to begin. The negative mode checks itself: a
  // candidate that is not negative, or a NaN, comes out as a result without a sign bit, and then the stage is done
  // again by value (a k may be taken twice). Once no result has a sign bit the positive mode is right for good.
  __device__ __forceinline__ void run_modes() {
    static_assert(Tile::kChunk == Tile::kGroupSlots, "a stage may be done again");
    arrive(0);
    Mode mode = first_mode();
    int t = 0;
    bool arrived = true;
    if (mode == Mode::negative) stages_in<Mode::negative>(t, arrived, mode);
    if (mode == Mode::value) stages_in<Mode::value>(t, arrived, mode);
    stages_in<Mode::positive>(t, arrived, mode);
  }
  // Stages from t on, to the end or to where another mode is better.
  template <Mode kMode>
  __device__ __forceinline__ void stages_in(int& t, bool& arrived, Mode& mode) {
    for (; t < stages_; ++t) {
      if (!arrived) arrive(t);
      arrived = false;
      chunk<kMode>(t);
      if constexpr (kMode == Mode::negative) {
        if (!all_negative()) {
          if constexpr (kArgmax) each([&](int i, int j) { best[i][j] = old_[i][j]; });
          arrived = true;
          mode = Mode::value;
          return;
        }
        if constexpr (kArgmax) remember<Mode::negative>(t * Tile::kGroups + group_);
      }
      // Looked at after stages 1, 2, 4, 8, ...: data that stay mixed shall not pay for it every time.
      if constexpr (kMode == Mode::value)
        if ((t & (t + 1)) == 0 && !any_negative()) {
          ++t;
          return;
        }
    }
  }
  __device__ __forceinline__ Mode first_mode() {
    const int begin = group_ * Tile::kGroupSlots;
    steps<Mode::value>(0, begin, begin + 2);
    const Mode mode = all_negative() ? Mode::negative : any_negative() ? Mode::value : Mode::positive;
    if constexpr (kArgmax) each([&](int i, int j) { best[i][j] = Core::worst(); });
    return mode;
  }

  // The groups' results become those of group 0.
  __device__ __forceinline__ void merge_groups() {
    if constexpr (Tile::kGroups > 1) {
      T* values = kKeeps ? b_ + min(stages_, Tile::kStages) * StagesB::kSize : a_;
      auto* saved_ids = reinterpret_cast<uint32_t*>(values + Tile::kGroups / 2 * Tile::kM * Tile::kN);
      const int place = static_cast<int>(threadIdx.x) % Tile::kGroupThreads;
      wait_copies<0>();
#pragma unroll
      for (int half = Tile::kGroups / 2; half >= 1; half /= 2) {
        __syncthreads();
        if (group_ >= half && group_ < 2 * half)
          each([&](int i, int j) {
            const int at = ((group_ - half) * kRows + i) * kCols + j;
            values[at * Tile::kGroupThreads + place] = best[i][j];
            if constexpr (kArgmax) {
              if (!kPacked)
                saved_ids[at * Tile::kGroupThreads + place] = ids[i][j];
              else if (j % 2 == 0)
                saved_ids[at / 2 * Tile::kGroupThreads + place] = ids[i][j / 2];
            }
          });
        __syncthreads();
        if (group_ < half)
          each([&](int i, int j) {
            const int at = (group_ * kRows + i) * kCols + j;
            const T x = values[at * Tile::kGroupThreads + place];
            if constexpr (!kArgmax) {
              best[i][j] = Core::merged(best[i][j], x);
            } else {
              const uint32_t word = saved_ids[(kPacked ? at / 2 : at) * Tile::kGroupThreads + place];
              const uint32_t x_id = kPacked ? half_of(word, j) : word;
              const T y = best[i][j];
              const bool same = x == y || (x != x && y != y);
              if (same ? x_id < id(i, j) : x > y || x != x) {
                best[i][j] = x;
                set_id(i, j, x_id);
              }
            }
          });
      }
    }
  }

  const LoopArgs<T>& args_;
  const int stages_;
  T* a_;
  T* b_;
  int group_, first_row_, first_col_;
  T old_[kArgmax ? kRows : 1][kArgmax ? kCols : 1];
};

}  // namespace tropical::cuda
