// The product of values with multiplicities on the device. Every k is taken once: nothing is repeated at the edges.
#include "args.h"
#include "counting.h"
#include "heuristics.h"
#include "launch.cuh"
#include "product.h"

namespace tropical::cuda {
namespace {

constexpr int kTile = 32, kDepth = 16, kThreads = 256, kEach = 2;  // a thread has kEach x kEach outputs

struct CountArgs {
  CountParams p;
  Batch<6> batch;  // a, b, c and their counts
  int* overflow;   // bit 0: of values, bit 1: of counts; nullptr where neither can
};

template <class V, class C>
__device__ void add_candidate(V value, C ways, V& best, C& found) {
  if (value > best || value != value)
    best = value, found = ways;
  else if (value == best)
    found = add_counts(found, ways);
}

// Returns what does not fit: see CountArgs::overflow.
template <class T, class Stored, class V, class C>
__device__ int store_counted(const CountParams& p, V best, C found, int64_t at, int64_t count_at) {
  using Rule = Counting<V>;
  const bool is_min = p.semiring == Semiring::min_plus;
  const bool is_nan = best != best, none = is_nan || Rule::is_absent(best);
  int overflow = 0;
  T value = is_min ? highest<T>() : lowest<T>();
  if ((is_nan || !none) && !Rule::store(best, is_min, value)) overflow |= 1;
  const C ways = none ? C{0} : found;
  if (!count_fits<Stored>(ways)) overflow |= 2;
  static_cast<T*>(p.c.data)[at] = value;
  static_cast<Stored*>(p.c_count.data)[count_at] = static_cast<Stored>(ways);
  return overflow;
}

// T and Stored are the types in memory, V and C those of the computation.
template <class T, class V, class Stored, class C>
__global__ void __launch_bounds__(kThreads) count_tiles(const __grid_constant__ CountArgs x) {
  using Rule = Counting<V>;
  __shared__ V a_value[kDepth][kTile + 1], b_value[kDepth][kTile + 1];
  __shared__ C a_count[kDepth][kTile + 1], b_count[kDepth][kTile + 1];
  const CountParams& p = x.p;
  const bool is_min = p.semiring == Semiring::min_plus;
  const int thread = static_cast<int>(threadIdx.x), tx = thread % (kTile / kEach), ty = thread / (kTile / kEach);
  const int64_t across = (p.n + kTile - 1) / kTile, down = (p.m + kTile - 1) / kTile;
  for (int64_t tile = blockIdx.x; tile < across * down * x.batch.count; tile += gridDim.x) {
    const int64_t i0 = tile / across % down * kTile, j0 = tile % across * kTile;
    int64_t offset[6];
    x.batch.offsets(tile / (across * down), offset);
    const auto load = [&](const Operand& of, const Operand& counts, int64_t at, int64_t count_at, V& value, C& count) {
      const T stored = static_cast<const T*>(of.data)[at];
      value = Rule::load(stored, is_min);
      const bool zero = stored == (is_min ? highest<T>() : lowest<T>());
      count = counts.data ? static_cast<C>(static_cast<const Stored*>(counts.data)[count_at])
                          : static_cast<C>(zero ? 0 : 1);
    };
    V best[kEach][kEach];
    C found[kEach][kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i)
#pragma unroll
      for (int j = 0; j < kEach; ++j) best[i][j] = Rule::start(), found[i][j] = 0;
    for (int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
      const int depth = static_cast<int>(min(int64_t{kDepth}, p.k - k0));
      __syncthreads();  // the tiles before have been read
      for (int e = thread; e < kTile * depth; e += kThreads) {
        const int k = e % depth, line = e / depth;
        const int64_t row = min(i0 + line, p.m - 1);
        load(p.a, p.a_count, offset[0] + row * p.a.row + (k0 + k) * p.a.col,
             offset[3] + row * p.a_count.row + (k0 + k) * p.a_count.col, a_value[k][line], a_count[k][line]);
      }
      for (int e = thread; e < kTile * depth; e += kThreads) {
        const int k = e / kTile, line = e % kTile;
        const int64_t col = min(j0 + line, p.n - 1);
        load(p.b, p.b_count, offset[1] + (k0 + k) * p.b.row + col * p.b.col,
             offset[4] + (k0 + k) * p.b_count.row + col * p.b_count.col, b_value[k][line], b_count[k][line]);
      }
      __syncthreads();
      for (int k = 0; k < depth; ++k)
#pragma unroll
        for (int i = 0; i < kEach; ++i)
#pragma unroll
          for (int j = 0; j < kEach; ++j) {
            const V t = a_value[k][ty * kEach + i] + b_value[k][tx * kEach + j];
            const C ways = a_count[k][ty * kEach + i] * b_count[k][tx * kEach + j];
            add_candidate(t, ways, best[i][j], found[i][j]);
          }
    }
    int overflow = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i)
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const int64_t row = i0 + ty * kEach + i, col = j0 + tx * kEach + j;
        if (row >= p.m || col >= p.n) continue;
        overflow |= store_counted<T, Stored>(p, best[i][j], found[i][j], offset[2] + row * p.c.row + col * p.c.col,
                                             offset[5] + row * p.c_count.row + col * p.c_count.col);
      }
    if (overflow && x.overflow) atomicOr(x.overflow, overflow);
  }
}

// At most kCols columns and little depth, as where a small tensor meets a large one: a thread has a row of the result.
// Rows are an axis of the batch here, the fastest where their elements of C lie closest.
template <class T, class V, class Stored, class C, int kCols>
__global__ void __launch_bounds__(kThreads) count_lines(const __grid_constant__ CountArgs x) {
  using Rule = Counting<V>;
  const CountParams& p = x.p;
  const bool is_min = p.semiring == Semiring::min_plus;
  const auto count = [&](const Stored* counts, T value) {
    if (counts) return static_cast<C>(*counts);
    return static_cast<C>(value == (is_min ? highest<T>() : lowest<T>()) ? 0 : 1);
  };
  const auto counts_at = [](const Operand& of, int64_t at) {
    return of.data ? static_cast<const Stored*>(of.data) + at : nullptr;
  };
  const auto n = static_cast<int>(p.n), depth = static_cast<int>(p.k);
  int overflow = 0;
  for (int64_t line = int64_t{blockIdx.x} * kThreads + threadIdx.x; line < x.batch.count;
       line += int64_t{gridDim.x} * kThreads) {
    int64_t offset[6];
    if (x.batch.count <= 0xffffffff)
      x.batch.offsets_of(static_cast<uint32_t>(line), offset);
    else
      x.batch.offsets(line, offset);
    const T *a = static_cast<const T*>(p.a.data) + offset[0], *b = static_cast<const T*>(p.b.data) + offset[1];
    const Stored *a_count = counts_at(p.a_count, offset[3]), *b_count = counts_at(p.b_count, offset[4]);
    V best[kCols];
    C found[kCols];
#pragma unroll
    for (int j = 0; j < kCols; ++j) best[j] = Rule::start(), found[j] = 0;
#pragma unroll 2
    for (int k = 0; k < depth; ++k) {
      const V value = Rule::load(*a, is_min);
      const C ways = count(a_count, *a);
#pragma unroll
      for (int j = 0; j < kCols; ++j)
        if (j < n) {
          const T other = b[j * p.b.col];
          add_candidate(value + Rule::load(other, is_min),
                        ways * count(b_count ? b_count + j * p.b_count.col : nullptr, other), best[j], found[j]);
        }
      a += p.a.col, b += p.b.row;
      if (a_count) a_count += p.a_count.col;
      if (b_count) b_count += p.b_count.row;
    }
#pragma unroll
    for (int j = 0; j < kCols; ++j)
      if (j < n)
        overflow |=
            store_counted<T, Stored>(p, best[j], found[j], offset[2] + j * p.c.col, offset[5] + j * p.c_count.col);
  }
  if (overflow && x.overflow) atomicOr(x.overflow, overflow);
}

// Lines of count_lines.
Batch<6> lines_of(const CountParams& p) {
  CountParams q = p;
  const std::initializer_list<Operand*> all = {&q.a, &q.b, &q.c, &q.a_count, &q.b_count, &q.c_count};
  int place = q.batch.ndim;
  while (place > 0 && std::abs(q.c.batch[place - 1]) < std::abs(q.c.row)) --place;
  for (int d = q.batch.ndim; d > place; --d) {
    q.batch.size[d] = q.batch.size[d - 1];
    for (Operand* x : all) x->batch[d] = x->batch[d - 1];
  }
  q.b.row = q.b_count.row = 0;
  q.batch.size[place] = q.m, ++q.batch.ndim;
  for (Operand* x : all) x->batch[place] = x->row;
  return collapse<6>(q.batch, {&q.a, &q.b, &q.c, &q.a_count, &q.b_count, &q.c_count});
}

template <class T, class V, class Stored, class C>
void count_as(const CountParams& p, Call& call) {
  constexpr bool kExact = std::is_integral_v<T> || std::is_same_v<Stored, int64_t>;
  CountArgs x{p, collapse<6>(p.batch, {&p.a, &p.b, &p.c, &p.a_count, &p.b_count, &p.c_count}), nullptr};
  const cudaStream_t stream = call.target.stream;
  if constexpr (kExact) {
    x.overflow = call.scratch.template take<int>(1);
    if (!call.target.dry) TG_CUDA_CHECK(cudaMemsetAsync(x.overflow, 0, sizeof(int), stream));
  }
  constexpr int kFew = 8, kShallow = 16;
  if (p.n <= kFew && p.k <= kShallow && p.batch.ndim < kMaxBatchDims) {
    x.batch = lines_of(p);
    const int64_t blocks =
        std::min(ceil_div(x.batch.count, kThreads), int64_t{16} * call.target.facts->multiprocessors);
    if (p.n <= 2)
      launch<&count_lines<T, V, Stored, C, 2>>(call.target, blocks, kThreads, 0, x);
    else
      launch<&count_lines<T, V, Stored, C, kFew>>(call.target, blocks, kThreads, 0, x);
  } else {
    launch<&count_tiles<T, V, Stored, C>>(call.target, ceil_div(p.m, kTile) * ceil_div(p.n, kTile) * p.batch.count(),
                                          kThreads, 0, x);
  }
  if (!kExact || call.target.dry) return;
  int overflow = 0;
  TG_CUDA_CHECK(cudaMemcpyAsync(&overflow, x.overflow, sizeof(int), cudaMemcpyDeviceToHost, stream));
  TG_CUDA_CHECK(cudaStreamSynchronize(stream));
  if (overflow & 1) throw Failure{ErrorCode::overflow, kValueOverflow};
  if (overflow & 2) throw Failure{ErrorCode::overflow, kCountOverflow};
}

}  // namespace

template <class T>
void count_product(const CountParams& params, Call& call) {
  using V = std::conditional_t<std::is_same_v<T, int32_t>, int64_t,
                               std::conditional_t<std::is_same_v<T, int64_t>, int128, T>>;
  if (params.m == 0 || params.n == 0 || params.batch.count() == 0) return;
  const CountParams p = params.m < params.n ? turned(params) : params;
  if (p.counts_are_int64)
    count_as<T, V, int64_t, int128>(p, call);
  else
    count_as<T, V, double, double>(p, call);
}

template void count_product<float>(const CountParams&, Call&);
template void count_product<double>(const CountParams&, Call&);
template void count_product<int32_t>(const CountParams&, Call&);
template void count_product<int64_t>(const CountParams&, Call&);

}  // namespace tropical::cuda
