// The fast kernels' loop over k: stages of both operands in shared memory, results in registers.
#pragma once
#include <algorithm>

#include "args.h"
#include "core_ops.cuh"
#include "tile_config.h"

namespace tropical::cuda {

// How an operand lies in memory: its lines (rows of A, columns of B) next to each other, or its steps of k.
enum class Contiguous { lines, k };

template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
  T x[N];
};

// Copies 16 bytes to shared memory without passing through registers.
__device__ __forceinline__ void copy_async(void* to, const void* from) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from));
#endif
}
__device__ __forceinline__ void commit_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;");
#endif
}
template <int kLeft>
__device__ __forceinline__ void wait_copies() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft));
#endif
}

// One operand of one block: stages in shared memory, kLines lines by kK slots each.
template <class T, class Tile, int kLines, Contiguous kLayout, bool kWrapVector>
struct Stages {
  static constexpr int kVector = 16 / sizeof(T), kK = Tile::kK;
  static constexpr bool kAlongK = kLayout == Contiguous::k;
  static constexpr int kPitch = kAlongK ? kK + kVector : kLines;  // padded rows meet no bank twice
  static constexpr int kSize = kAlongK ? kLines * kPitch : kK * kPitch;
  static constexpr int kCopies = kLines * kK / kVector;

  // Slots beyond the end repeat earlier ones, the same for both operands: the last one, or of the last vector where one
  // of the operands is copied in vectors along k.
  __device__ __forceinline__ static int slot(int k, int size) {
    if constexpr (kWrapVector)
      return k < size ? k : size - kVector + k % kVector;
    else
      return min(k, size - 1);
  }

  // Every thread copies vectors of one place along the contiguous axis, kEach of them along the other.
  static constexpr int kRow = (kAlongK ? kK : kLines) / kVector;
  static constexpr int kEach = (kCopies + Tile::kThreads - 1) / Tile::kThreads, kStride = Tile::kThreads / kRow;
  static_assert(Tile::kThreads % kRow == 0);
  __device__ __forceinline__ static void load(T* stage, const T* from, int pitch, int line0, int lines, int k0, int k) {
    const int thread = static_cast<int>(threadIdx.x), at = thread % kRow * kVector, first = thread / kRow;
    T* to = stage + first * kPitch + at;
    from += kAlongK ? slot(k0 + at, k) : min(line0 + at, lines - kVector);
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      if (kCopies % Tile::kThreads != 0 && first + e * kStride >= (kAlongK ? kLines : kK)) break;
      const int other = kAlongK ? min(line0 + first + e * kStride, lines - 1) : slot(k0 + first + e * kStride, k);
      copy_async(to + e * kStride * kPitch, from + static_cast<int64_t>(other) * pitch);
    }
  }

  // Registers of kCount lines at slots k and k + 1. `first` is the thread's place among kStep neighbours.
  template <int kCount, int kStep>
  __device__ __forceinline__ static void read(const T* stage, int first, int k, T (&x)[2][kCount]) {
    if constexpr (kAlongK) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const auto v = *reinterpret_cast<const Vector<T, 2>*>(stage + (first + kStep * i) * kPitch + k);
        x[0][i] = v.x[0], x[1][i] = v.x[1];
      }
    } else {
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int q = 0; q < kCount / kVector; ++q) {
          const auto v = *reinterpret_cast<const Vector<T, kVector>*>(stage + (k + h) * kPitch + first * kVector +
                                                                      q * kStep * kVector);
#pragma unroll
          for (int u = 0; u < kVector; ++u) x[h][q * kVector + u] = v.x[u];
        }
    }
  }
  // Slots k to k + 3 of one line; k is a multiple of 4.
  __device__ __forceinline__ static void four(const T* stage, int line, int k, T (&x)[4]) {
    if constexpr (kAlongK) {
      const auto v = *reinterpret_cast<const Vector<T, 4>*>(stage + line * kPitch + k);
#pragma unroll
      for (int u = 0; u < 4; ++u) x[u] = v.x[u];
    } else {
#pragma unroll
      for (int u = 0; u < 4; ++u) x[u] = stage[(k + u) * kPitch + line];
    }
  }
  // The line of register i.
  template <int kStep>
  __device__ static int line(int first, int i) {
    return kAlongK ? first + kStep * i : (first + i / kVector * kStep) * kVector + i % kVector;
  }
};

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
  using StagesA = Stages<T, Tile, Tile::kM, kA, kWrapVector>;
  using StagesB = Stages<T, Tile, Tile::kN, kB, kWrapVector>;
  static constexpr int kRows = Tile::kRows, kCols = Tile::kCols;
  static constexpr bool kArgmax = kTrack != Track::values, kKeeps = kTrack == Track::indices;
  static constexpr int kMergeBytes =
      Tile::kGroups / 2 * Tile::kM * Tile::kN * static_cast<int>(sizeof(T) + (kArgmax ? 2 : 0));
  // Shared memory for `slots` of k.
  static size_t shared_bytes(int slots) {
    const int stages = std::min((slots + Tile::kK - 1) / Tile::kK, Tile::kStages);
    const int operands = stages * (StagesA::kSize + StagesB::kSize) * static_cast<int>(sizeof(T));
    return static_cast<size_t>(kKeeps ? operands + kMergeBytes : std::max(operands, kMergeBytes));
  }

  T best[kRows][kCols];
  uint32_t ids[kArgmax ? kRows : 1][kArgmax ? kCols / 2 : 1];

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
  __device__ uint32_t id(int i, int j) const { return j & 1 ? ids[i][j / 2] >> 16 : ids[i][j / 2] & 0xffffu; }

  // The first k of the chunk of output (i, j) whose candidate is the result, among operands still in shared memory.
  __device__ __forceinline__ int first_match(int i, int j) const {
    const int k0 = static_cast<int>(id(i, j)) * Tile::kChunk;
    const T* a = a_ + k0 / Tile::kK * StagesA::kSize;
    const T* b = b_ + k0 / Tile::kK * StagesB::kSize;
    int found = 0;
#pragma unroll
    for (int u0 = Tile::kChunk - 4; u0 >= 0; u0 -= 4) {
      const int k = k0 % Tile::kK + u0;
      T x[4], y[4];
      StagesA::four(a, row(i), k, x);
      StagesB::four(b, col(j), k, y);
#pragma unroll
      for (int u = 3; u >= 0; --u) {
        const T t = Core::candidate(x[u], y[u]);
        if ((t == best[i][j] || t != t) && k0 + u0 + u < args_.k) found = u0 + u;
      }
    }
    return k0 + found;
  }

  __device__ __forceinline__ void run() {
    each([&](int i, int j) {
      best[i][j] = Core::worst();
      if constexpr (kArgmax) ids[i][j / 2] = 0;
    });
#pragma unroll
    for (int t = 0; t < Tile::kStages - 1; ++t) fetch(t);
    int t = 0;
    if constexpr (Core::kModes && kThreeInputMax)
      run_modes(t);
    else
      for (; t < stages_; ++t) {
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
      each([&](int i, int j) { Core::template step<kMode>(x[0][i], y[0][j], x[1][i], y[1][j], best[i][j]); });
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
      if constexpr (kMode == Mode::value) improved = improved && !(best[i][j] == old_[i][j]);
      if (improved) set_id(i, j, id);
    });
  }
  __device__ __forceinline__ void set_id(int i, int j, uint32_t id) {
    ids[i][j / 2] = j & 1 ? __byte_perm(ids[i][j / 2], id << 16, 0x7610) : __byte_perm(ids[i][j / 2], id, 0x3254);
  }

  __device__ __forceinline__ bool any_negative() const {
    uint32_t bits = 0;
    each([&](int i, int j) { bits |= __float_as_uint(best[i][j]); });
    return __any_sync(~0u, bits >> 31);
  }
  __device__ __forceinline__ bool all_negative() const {
    uint32_t bits = ~0u;
    each([&](int i, int j) { bits &= __float_as_uint(best[i][j]); });
    return __all_sync(~0u, bits >> 31);
  }

  // Each warp chooses for itself. The first two candidates say where to begin. The negative mode checks itself: a
  // candidate that is not negative, or a NaN, comes out as a result without a sign bit, and then the stage is done
  // again by value (a k may be taken twice). Once no result has a sign bit the positive mode is right for good.
  __device__ __forceinline__ void run_modes(int& t) {
    static_assert(Tile::kChunk == Tile::kGroupSlots, "a stage may be done again");
    arrive(0);
    bool arrived = true;
    const int begin = group_ * Tile::kGroupSlots;
    steps<Mode::value>(0, begin, begin + 2);
    const bool negative = all_negative();
    const bool positive = !negative && !any_negative();
    if constexpr (kArgmax) each([&](int i, int j) { best[i][j] = Core::worst(); });
    if (negative)
      for (; t < stages_; ++t) {
        if (!arrived) arrive(t);
        arrived = false;
        chunk<Mode::negative>(t);
        if (!all_negative()) {
          if constexpr (kArgmax) each([&](int i, int j) { best[i][j] = old_[i][j]; });
          arrived = true;
          break;
        }
        if constexpr (kArgmax) remember<Mode::negative>(t * Tile::kGroups + group_);
      }
    if (!positive)
      for (; t < stages_; ++t) {
        if (!arrived) arrive(t);
        arrived = false;
        chunk<Mode::value>(t);
        if (!any_negative()) {
          ++t;
          break;
        }
      }
    for (; t < stages_; ++t) {
      if (!arrived) arrive(t);
      arrived = false;
      chunk<Mode::positive>(t);
    }
  }

  // The groups' results become those of group 0.
  __device__ __forceinline__ void merge_groups() {
    if constexpr (Tile::kGroups > 1) {
      T* values = kKeeps ? b_ + stages_ * StagesB::kSize : a_;
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
              if (j % 2 == 0) saved_ids[at / 2 * Tile::kGroupThreads + place] = ids[i][j / 2];
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
              const uint32_t both = saved_ids[at / 2 * Tile::kGroupThreads + place];
              const uint32_t x_id = j & 1 ? both >> 16 : both & 0xffffu;
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
