// The steps of a closure on the device: of order n² a pivot beside its products. Kernels here walk row-major matrices.
#pragma once
#include "edge_rule.h"
#include "elements.cuh"
#include "heuristics.h"
#include "launch.cuh"
#include "product.h"

namespace tropical::cuda {

template <class T>
struct Plane {
  T* data;
  int64_t row, col;
  __device__ T& at(int64_t i, int64_t j) const { return data[i * row + j * col]; }
  __device__ explicit operator bool() const { return data != nullptr; }
};
template <class T>
Plane<T> plane(const Operand& x) {
  return {static_cast<T*>(x.data), x.row, x.col};
}

inline constexpr int kStepTile = 32, kStepRows = 8;  // threads: a tile's columns, and a part of its rows
inline constexpr int kStepThreads = kStepTile * kStepRows;

__device__ inline void lower(int64_t* x, int64_t y) {
  if (y != GraphReport::kNowhere) atomicMin(reinterpret_cast<long long*>(x), static_cast<long long>(y));
}
__device__ inline void report(GraphReport* into, const GraphReport& found) {
  lower(&into->nan_at, found.nan_at);
  lower(&into->infinite_at, found.infinite_at);
  lower(&into->negative_at, found.negative_at);
  if (found.zeros) atomicAdd(reinterpret_cast<unsigned long long*>(&into->zeros), found.zeros);
  if (found.absent) atomicAdd(reinterpret_cast<unsigned long long*>(&into->absent), found.absent);
  // Doubles that are not negative have the order of their bits.
  if (found.magnitude > 0)
    atomicMax(reinterpret_cast<unsigned long long*>(&into->magnitude),
              static_cast<unsigned long long>(__double_as_longlong(found.magnitude)));
}
// What the threads of a warp found, told by one of them.
__device__ inline void report_warp(GraphReport* into, GraphReport found) {
  for (int step = 16; step > 0; step /= 2) {
    found.nan_at = min(found.nan_at, __shfl_xor_sync(~0u, found.nan_at, step));
    found.infinite_at = min(found.infinite_at, __shfl_xor_sync(~0u, found.infinite_at, step));
    found.negative_at = min(found.negative_at, __shfl_xor_sync(~0u, found.negative_at, step));
    found.zeros += __shfl_xor_sync(~0u, found.zeros, step);
    found.absent += __shfl_xor_sync(~0u, found.absent, step);
    found.magnitude = fmax(found.magnitude, __shfl_xor_sync(~0u, found.magnitude, step));
  }
  if (threadIdx.x % 32 == 0) report(into, found);
}

// Bools may be any nonzero byte; the rule sees true.
template <class T>
__device__ inline T as_element(Stored<T> x) {
  if constexpr (std::is_same_v<T, bool>)
    return x != 0;
  else
    return x;
}

// A block takes a tile or, of an undirected graph, two that mirror each other.
template <class S, class T>
__global__ void __launch_bounds__(kStepThreads)
    load_edges(Plane<const Stored<T>> from, Plane<Stored<T>> to, Plane<int32_t> pred, EdgeRule<S, T> rule,
               bool undirected, GraphReport* into) {
  __shared__ Stored<T> tiles[2][kStepTile][kStepTile + 1];
  const int64_t n = rule.n, across = (n + kStepTile - 1) / kStepTile;
  const int x = static_cast<int>(threadIdx.x) % kStepTile, y = static_cast<int>(threadIdx.x) / kStepTile;
  GraphReport found;
  for (int64_t tile = blockIdx.x; tile < across * across; tile += gridDim.x) {
    const int64_t i0 = tile / across * kStepTile, j0 = tile % across * kStepTile;
    if (undirected && i0 > j0) continue;
    const int sides = undirected && i0 != j0 ? 2 : 1;
    for (int side = 0; side < sides; ++side)
      for (int r = y; r < kStepTile; r += kStepRows) {
        const int64_t i = (side ? j0 : i0) + r, j = (side ? i0 : j0) + x;
        if (i < n && j < n) tiles[side][r][x] = from.at(i, j);
      }
    __syncthreads();
    for (int side = 0; side < sides; ++side)
      for (int r = y; r < kStepTile; r += kStepRows) {
        const int64_t i = (side ? j0 : i0) + r, j = (side ? i0 : j0) + x;
        if (i >= n || j >= n) continue;
        T best = rule.edge(as_element<T>(tiles[side][r][x]), i, j, found);
        if (undirected && i != j) {
          // The mirrored element is counted where it is at home.
          GraphReport ignored;
          const T other = rule.edge(as_element<T>(tiles[sides == 1 ? 0 : 1 - side][x][r]), j, i, ignored);
          if (S::better(other, best)) best = other;
        }
        if (to) to.at(i, j) = rule.element(best, i == j);
        if (pred) pred.at(i, j) = i == j || rule.is_zero(best) ? kNoPredecessor : static_cast<int32_t>(i);
      }
    __syncthreads();
  }
  report_warp(into, found);
}

template <class T>
__global__ void __launch_bounds__(kStepThreads)
    copy_elements(Plane<const Stored<T>> from, Plane<Stored<T>> to, int64_t m, int64_t n) {
  for (int64_t at = blockIdx.x * int64_t{kStepThreads} + threadIdx.x; at < m * n;
       at += gridDim.x * int64_t{kStepThreads})
    to.at(at / n, at % n) = from.at(at / n, at % n);
}

template <class T>
__global__ void __launch_bounds__(kStepThreads)
    find_difference(Plane<const Stored<T>> x, Plane<const Stored<T>> y, int64_t m, int64_t n, GraphReport* into) {
  bool found = false;
  for (int64_t at = blockIdx.x * int64_t{kStepThreads} + threadIdx.x; at < m * n;
       at += gridDim.x * int64_t{kStepThreads}) {
    const Stored<T> a = x.at(at / n, at % n), b = y.at(at / n, at % n);
    if constexpr (is_half_v<T>)
      found |= a.bits != b.bits;
    else
      found |= a != b;
  }
  if (found) into->differs = 1;
}

template <class S, class T>
__global__ void __launch_bounds__(kStepThreads)
    start_row(Plane<Stored<T>> to, Plane<int32_t> pred, int64_t n, int64_t source) {
  for (int64_t j = blockIdx.x * int64_t{kStepThreads} + threadIdx.x; j < n; j += gridDim.x * int64_t{kStepThreads}) {
    to.at(0, j) = source < 0 || j == source ? S::template one<T>() : S::template zero<T>();
    if (pred) pred.at(0, j) = kNoPredecessor;
  }
}

template <class S, class T>
__global__ void __launch_bounds__(kStepThreads) settle_diagonal(Plane<Stored<T>> x, Plane<int32_t> pred, int64_t n,
                                                                double tolerance, int64_t first, GraphReport* into) {
  for (int64_t k = blockIdx.x * int64_t{kStepThreads} + threadIdx.x; k < n; k += gridDim.x * int64_t{kStepThreads}) {
    T value = as_element<T>(x.at(k, k));
    if (!S::better(value, S::template one<T>())) continue;
    if (!settles<S>(value, tolerance)) {
      lower(&into->diverged, first + k);
      continue;
    }
    x.at(k, k) = value;
    if (pred) pred.at(k, k) = kNoPredecessor;
  }
}

// Rows of kStepThreads columns for each block.
static __global__ void __launch_bounds__(kStepThreads)
    resolve_marks(Plane<int32_t> pred, Plane<const int32_t> from, int64_t m, int64_t n, int32_t limit) {
  const int64_t across = (n + kStepThreads - 1) / kStepThreads;
  for (int64_t block = blockIdx.x; block < m * across; block += gridDim.x) {
    const int64_t i = block / across, j = block % across * kStepThreads + threadIdx.x;
    if (j >= n) continue;
    const int32_t mark = pred.at(i, j);
    if (mark >= limit) pred.at(i, j) = from.at(mark - limit, j);
  }
}

// The rows of a pivot over kPanelRows of its columns or others, all in registers; a step of Floyd-Warshall shares its
// row (and column) through shared memory.
inline constexpr int kPanelRows = 64, kPanelSide = 16, kPanelEach = kPanelRows / kPanelSide;

// Columns of C: those of the pivot itself, which record what each row has to the others at each step, or the rest.
template <class S, class T, bool kRecords, bool kTracks>
__global__ void __launch_bounds__(kPanelSide* kPanelSide)
    panel_steps(Plane<Stored<T>> d, Plane<int32_t> pred, Plane<Stored<T>> multipliers, int rows, int64_t n,
                int64_t first, double tolerance, GraphReport* into) {
  __shared__ T through[2][kPanelRows], to_k[2][kPanelRows];
  __shared__ int32_t through_pred[2][kPanelRows];
  if (into->diverged != GraphReport::kNowhere) return;
  const int tx = static_cast<int>(threadIdx.x) % kPanelSide, ty = static_cast<int>(threadIdx.x) / kPanelSide;
  // Blocks count the columns without those of the pivot.
  const int64_t block0 = int64_t{blockIdx.x} * kPanelRows;
  T value[kPanelEach][kPanelEach];
  [[maybe_unused]] int32_t index[kPanelEach][kPanelEach];
  int64_t column[kPanelEach];
#pragma unroll
  for (int c = 0; c < kPanelEach; ++c) {
    const int64_t j = block0 + tx + c * kPanelSide;
    column[c] = kRecords ? (j < rows ? first + j : n) : j < first ? j : j + rows;
  }
#pragma unroll
  for (int r = 0; r < kPanelEach; ++r)
#pragma unroll
    for (int c = 0; c < kPanelEach; ++c) {
      const int i = ty + r * kPanelSide;
      const bool real = i < rows && column[c] < n;
      value[r][c] = real ? as_element<T>(d.at(i, column[c])) : S::template zero<T>();
      if constexpr (kTracks) index[r][c] = real ? pred.at(i, column[c]) : 0;
    }
#pragma unroll
  for (int r = 0; r < kPanelEach; ++r) {  // row k = kPanelSide * r + s, so that registers have constant indices
    for (int s = 0; s < kPanelSide; ++s) {
      const int k = kPanelSide * r + s, stage = s & 1;
      if (k >= rows) break;
      if (ty == s) {
        if constexpr (kRecords) {
          if (tx == s) {
            const T before = value[r][r];
            if (!settles<S>(value[r][r], tolerance)) lower(&into->diverged, first + k);
            if constexpr (kTracks)
              if (S::better(before, value[r][r])) index[r][r] = kNoPredecessor;
          }
        }
#pragma unroll
        for (int c = 0; c < kPanelEach; ++c) {
          through[stage][tx + c * kPanelSide] = value[r][c];
          if constexpr (kTracks) through_pred[stage][tx + c * kPanelSide] = index[r][c];
        }
      }
      if constexpr (kRecords) {
        if (tx == s) {
#pragma unroll
          for (int i = 0; i < kPanelEach; ++i) to_k[stage][ty + i * kPanelSide] = value[i][r];
        }
      } else {
        const int i = static_cast<int>(threadIdx.x);
        if (i < rows) to_k[stage][i] = as_element<T>(multipliers.at(i, k));
      }
      __syncthreads();
      if constexpr (kRecords) {
        const int i = static_cast<int>(threadIdx.x);
        if (i < rows) multipliers.at(i, k) = to_k[stage][i];
      }
#pragma unroll
      for (int i = 0; i < kPanelEach; ++i) {
        const int row = ty + i * kPanelSide;
        const T m = to_k[stage][row];
#pragma unroll
        for (int c = 0; c < kPanelEach; ++c) {
          const T x = S::mul(m, through[stage][tx + c * kPanelSide]);
          const bool better = row != k && S::better(x, value[i][c]);
          value[i][c] = better ? x : value[i][c];
          if constexpr (kTracks) index[i][c] = better ? through_pred[stage][tx + c * kPanelSide] : index[i][c];
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kPanelEach; ++r)
#pragma unroll
    for (int c = 0; c < kPanelEach; ++c) {
      const int i = ty + r * kPanelSide;
      if (i >= rows || column[c] >= n) continue;
      d.at(i, column[c]) = canonical(value[r][c]);
      if constexpr (kTracks) pred.at(i, column[c]) = index[r][c];
    }
}

template <class T>
class ClosureSteps {
 public:
  ClosureSteps(const GraphParams& p, const Target& target) : p_(p), target_(target) {}

  void run() const {
    const auto blocks = [&](int64_t count) { return std::min<int64_t>(ceil_div(count, kStepThreads), kMostBlocks); };
    switch (p_.step) {
      case GraphStep::copy:
        return launch<&copy_elements<T>>(target_, blocks(p_.m * p_.n), kStepThreads, 0, plane<const E>(p_.from),
                                         plane<E>(p_.to), p_.m, p_.n);
      case GraphStep::differs:
        return launch<&find_difference<T>>(target_, blocks(p_.m * p_.n), kStepThreads, 0, plane<const E>(p_.to),
                                           plane<const E>(p_.from), p_.m, p_.n, p_.report);
      case GraphStep::resolve:
        return launch<&resolve_marks>(target_, std::min(p_.m * ceil_div(p_.n, kStepThreads), kMostBlocks * 16),
                                      kStepThreads, 0, plane<int32_t>(p_.pred), plane<const int32_t>(p_.pred_from),
                                      p_.m, p_.n, p_.limit);
      default:
        break;
    }
    [&]<class... S>(TypeList<S...>) { ((p_.semiring == S::kId ? over<S>() : void()), ...); }(AllSemirings{});
  }

 private:
  using E = Stored<T>;
  static constexpr int64_t kMostBlocks = 1 << 14;

  template <class S>
  void over() const {
    if constexpr (supported_v<S, T>) {
      const int64_t across = ceil_div(p_.n, kStepTile);
      if (p_.step == GraphStep::load)
        launch<&load_edges<S, T>>(target_, std::min(across * across, kMostBlocks), kStepThreads, 0,
                                  plane<const E>(p_.from), plane<E>(p_.to), plane<int32_t>(p_.pred),
                                  edge_rule<S, T>(p_), p_.undirected, p_.report);
      else if (p_.step == GraphStep::start)
        launch<&start_row<S, T>>(target_, ceil_div(p_.n, kStepThreads), kStepThreads, 0, plane<E>(p_.to),
                                 plane<int32_t>(p_.pred), p_.n, p_.first);
      else if (p_.step == GraphStep::diagonal)
        launch<&settle_diagonal<S, T>>(target_, ceil_div(p_.n, kStepThreads), kStepThreads, 0, plane<E>(p_.to),
                                       plane<int32_t>(p_.pred), p_.n, p_.tolerance, p_.first, p_.report);
      else if (p_.pred.data)
        panel<S, true>();
      else
        panel<S, false>();
    }
  }

  template <class S, bool kTracks>
  void panel() const {
    const auto some = [&]<bool kRecords>(int64_t columns) {
      launch<&panel_steps<S, T, kRecords, kTracks>>(target_, ceil_div(columns, kPanelRows), kPanelSide * kPanelSide, 0,
                                                    plane<E>(p_.to), plane<int32_t>(p_.pred), plane<E>(p_.from),
                                                    static_cast<int>(p_.m), p_.n, p_.first, p_.tolerance, p_.report);
    };
    some.template operator()<true>(p_.m);
    some.template operator()<false>(p_.n - p_.m);
  }

  const GraphParams& p_;
  const Target& target_;
};

template <class T>
void closure_step(const GraphParams& params, const Target& target) {
  ClosureSteps<T>(params, target).run();
}

}  // namespace tropical::cuda
