// Stages of the fast kernels' operands in shared memory: how they get there, how they are read.
#pragma once
#include "args.h"
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

// One operand of one block: stages in shared memory, kLines lines by kK slots each. kSpread: slots of one line lie in
// different banks.
template <class T, class Tile, int kLines, Contiguous kLayout, bool kWrapVector, bool kSpread, bool kQuick>
struct Stages {
  static constexpr int kVector = 16 / sizeof(T), kK = Tile::kK;
  static constexpr bool kAlongK = kLayout == Contiguous::k;
  static constexpr int kPitch = kAlongK ? kK + kVector : kLines + (kSpread ? kVector : 0);  // no bank is met twice
  static constexpr int kSize = (kAlongK ? kLines : kK) * kPitch + (kSpread ? kVector : 0);
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
    const auto copy_each = [&](auto source) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        if (kCopies % Tile::kThreads != 0 && first + e * kStride >= (kAlongK ? kLines : kK)) break;
        copy_async(to + e * kStride * kPitch, source(e));
      }
    };
    // Where nothing is to be repeated, addresses cost less: worth code of its own where there are several.
    if (kQuick && kEach >= 4 && line0 + kLines <= lines && k0 + kK <= k) {
      from += static_cast<int64_t>((kAlongK ? line0 : k0) + first) * pitch + (kAlongK ? k0 : line0) + at;
      const int64_t step = static_cast<int64_t>(kStride) * pitch;
      copy_each([&](int e) { return from + e * step; });
    } else {
      from += kAlongK ? slot(k0 + at, k) : min(line0 + at, lines - kVector);
      copy_each([&](int e) {
        const int other = (kAlongK ? line0 : k0) + first + e * kStride;
        return from + static_cast<int64_t>(kAlongK ? min(other, lines - 1) : slot(other, k)) * pitch;
      });
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
  // Slots k to k + 3 of one line, k a multiple of 4, among stages that are all there.
  __device__ __forceinline__ static void four(const T* stages, int line, int k, T (&x)[4]) {
    const T* stage = stages + k / kK * kSize;
    if constexpr (kAlongK) {
      const auto v = *reinterpret_cast<const Vector<T, 4>*>(stage + line * kPitch + k % kK);
#pragma unroll
      for (int u = 0; u < 4; ++u) x[u] = v.x[u];
    } else {
#pragma unroll
      for (int u = 0; u < 4; ++u) x[u] = stage[(k % kK + u) * kPitch + line];
    }
  }
  // The line of register i.
  template <int kStep>
  __device__ static int line(int first, int i) {
    return kAlongK ? first + kStep * i : (first + i / kVector * kStep) * kVector + i % kVector;
  }
};

}  // namespace tropical::cuda
