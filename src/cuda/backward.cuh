// The gradient through the selected k. A warp owns a line of A (a row) or of B (a column) and keeps the sums of its K
// elements in shared memory; it walks the outputs of that line in order, so every sum has one order of additions.
#pragma once
#include "args.h"
#include "elements.cuh"

namespace tropical::cuda {

// The part of the gradient with respect to one operand, seen as (line, across): `line` runs along the axis that the
// operand shares with C, `across` along the axis of C that is summed away.
struct SideArgs {
  struct View {
    const void* data = nullptr;
    int64_t line = 0, other = 0;  // strides; `other` is along k for operands, across for grad_c and argmax
  };
  View own, opposite, grad_c, argmax;
  void* grad;
  int64_t grad_line, grad_k;
  int64_t lines, across, k;
  Batch<5> kept;    // own, opposite, grad_c, argmax, grad
  Batch<4> summed;  // own, opposite, grad_c, argmax
  bool argmax_is_int64;
  // Division of the work.
  int64_t splits;  // of the (summed member, across) range, each with sums of its own in `partial`
  void* partial;   // [split][kept][line][k] in the summing type, if splits > 1
  int bins;        // elements of k that are summed in one go
  int bins_stride;
};

// What the derivative of a * b looks like.
enum class GradientRule { one, product, choose_smaller, choose_larger };

template <class S>
inline constexpr GradientRule gradient_rule_v = is_plus_v<S>                ? GradientRule::one
                                                : is_times_v<S>             ? GradientRule::product
                                                : std::is_same_v<S, MaxMin> ? GradientRule::choose_smaller
                                                                            : GradientRule::choose_larger;

template <class In>
__device__ inline wide_t<In> wide_load(const In* x) {
  if constexpr (is_half_v<In>)
    return half_to_float(*x);
  else
    return *x;
}

template <class In, class W>
__device__ inline void store_sum(In* to, W sum) {
  if constexpr (is_half_v<In>) {
    constexpr In nan = canonical(In{0x7fff});
    const float rounded = round_through<In>(sum) + 0.0f;
    *to = rounded != rounded ? nan : round_to_half<In>(rounded);
  } else {
    *to = canonical(sum);
  }
}

// d(own * opposite) / d(own), times g.
template <GradientRule kRule, bool kOwnIsA, class W>
__device__ inline W share(W g, W own, W opposite) {
  if constexpr (kRule == GradientRule::one) {
    return g;
  } else if constexpr (kRule == GradientRule::product) {
    return g * opposite;
  } else {
    // The operand that the inner operation chose; A on a tie. A NaN operand is the chosen one, A first.
    const W a = kOwnIsA ? own : opposite, b = kOwnIsA ? opposite : own;
    const bool chose_a = a != a || (b == b && (kRule == GradientRule::choose_smaller ? a <= b : a >= b));
    return chose_a == kOwnIsA ? g : W{0};
  }
}

// Adds 32 values at a time to their bins (-1: none), which are below 2^bits. Lanes that meet in one bin are added up
// first, in a tree that depends on nothing but the bins; kCount such sets go side by side, then into the bins one after
// the other.
template <int kCount, class W>
__device__ __forceinline__ void add_to_bins(W* sums, const int (&bin)[kCount], W (&value)[kCount], int lane, int bits) {
  unsigned later[kCount];  // lanes of the same bin: all, then those still to be taken in
  int rank[kCount];
  bool first[kCount];
#pragma unroll
  for (int u = 0; u < kCount; ++u) later[u] = __ballot_sync(~0u, bin[u] >= 0);
  // Ballots by bit: much faster than __match_any_sync.
  for (int bit = 0; bit < bits; ++bit)
#pragma unroll
    for (int u = 0; u < kCount; ++u) {
      const bool one = bin[u] >> bit & 1;
      const unsigned ones = __ballot_sync(~0u, one);
      later[u] &= one ? ones : ~ones;
    }
#pragma unroll
  for (int u = 0; u < kCount; ++u) {
    if (bin[u] < 0) later[u] = 0;
    rank[u] = __popc(later[u] & ((1u << lane) - 1));
    first[u] = rank[u] == 0 && bin[u] >= 0;
    later[u] &= ~0u << lane << 1;
  }
  for (;;) {
    unsigned any = 0;
#pragma unroll
    for (int u = 0; u < kCount; ++u) any |= later[u];
    if (!__any_sync(~0u, any != 0)) break;
#pragma unroll
    for (int u = 0; u < kCount; ++u) {
      const int next = __ffs(static_cast<int>(later[u]));
      const W x = __shfl_sync(~0u, value[u], next ? next - 1 : lane);
      if (next) value[u] += x;
      // Every second lane of a bin has been taken in by the one before it.
      later[u] &= __ballot_sync(~0u, (rank[u] & 1) == 0);
      rank[u] >>= 1;
    }
  }
#pragma unroll
  for (int u = 0; u < kCount; ++u) {
    if (first[u]) sums[bin[u]] += value[u];
    __syncwarp();
  }
}

template <GradientRule kRule, class In, bool kOwnIsA>
__global__ void __launch_bounds__(256) gradient_sums(const __grid_constant__ SideArgs p) {
  using W = wide_t<In>;
  constexpr int kAhead = 4;  // loads in flight
  extern __shared__ __align__(16) unsigned char shared[];
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  W* all_sums = reinterpret_cast<W*>(shared);
  W* sums = all_sums + warp * p.bins_stride;
  const int64_t groups = (p.lines + warps - 1) / warps, k_blocks = (p.k + p.bins - 1) / p.bins;
  const int64_t pieces = (p.across + 31) / 32, range = pieces * p.summed.count;

  for (int64_t work = blockIdx.x; work < p.kept.count * groups * k_blocks * p.splits; work += gridDim.x) {
    const int64_t group = work % groups, k_block = work / groups % k_blocks;
    const int64_t split = work / groups / k_blocks % p.splits, keep = work / groups / k_blocks / p.splits;
    const int64_t line = group * warps + warp;
    const int64_t k_begin = k_block * p.bins;
    const int bins = static_cast<int>(min(p.k - k_begin, int64_t{p.bins}));
    int64_t kept[5];
    p.kept.offsets(keep, kept);
    const int bits = 32 - __clz(bins - 1);
    for (int k = lane; k < bins; k += 32) sums[k] = W{0};
    __syncwarp();

    const int64_t begin = range * split / p.splits, end = line < p.lines ? range * (split + 1) / p.splits : begin;
    int64_t member = begin / pieces, piece = begin % pieces, summed[4], arg_at = 0, grad_at = 0;
    const auto go_to = [&] {
      p.summed.offsets(member, summed);
      const int64_t x = piece * 32 + lane;
      arg_at = kept[3] + summed[3] + line * p.argmax.line + x * p.argmax.other;
      grad_at = kept[2] + summed[2] + line * p.grad_c.line + x * p.grad_c.other;
    };
    go_to();
    for (int64_t at = begin; at < end;) {
      // Addresses, then loads without a branch in between, so that all are in flight at once; a lane that has nothing
      // to load reads the first element.
      int64_t x[kAhead], arg_from[kAhead], grad_from[kAhead], k[kAhead];
      [[maybe_unused]] int64_t summed_of[kAhead][2];
      bool valid[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        summed_of[u][0] = summed[0], summed_of[u][1] = summed[1];
        x[u] = piece * 32 + lane;
        valid[u] = at < end && x[u] < p.across;
        if (!valid[u]) x[u] = 0;
        arg_from[u] = valid[u] ? arg_at : 0;
        grad_from[u] = valid[u] ? grad_at : 0;
        ++at;
        arg_at += 32 * p.argmax.other;
        grad_at += 32 * p.grad_c.other;
        if (++piece == pieces) {
          piece = 0;
          ++member;
          if (at < end) go_to();
        }
      }
      if (p.argmax_is_int64) {
#pragma unroll
        for (int u = 0; u < kAhead; ++u) k[u] = static_cast<const int64_t*>(p.argmax.data)[arg_from[u]];
      } else {
#pragma unroll
        for (int u = 0; u < kAhead; ++u) k[u] = static_cast<const int32_t*>(p.argmax.data)[arg_from[u]];
      }
      int bin[kAhead];
      W value[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) value[u] = wide_load(static_cast<const In*>(p.grad_c.data) + grad_from[u]);
      if constexpr (kRule == GradientRule::one) {
#pragma unroll
        for (int u = 0; u < kAhead; ++u)
          bin[u] = valid[u] && k[u] >= k_begin && k[u] < k_begin + bins ? static_cast<int>(k[u] - k_begin) : -1;
      } else {
        W own[kAhead], opposite[kAhead];
#pragma unroll
        for (int u = 0; u < kAhead; ++u) {
          const bool in = valid[u] && k[u] >= k_begin && k[u] < k_begin + bins;
          bin[u] = in ? static_cast<int>(k[u] - k_begin) : -1;
          const int64_t from = in ? kept[1] + summed_of[u][1] + x[u] * p.opposite.line + k[u] * p.opposite.other : 0;
          opposite[u] = wide_load(static_cast<const In*>(p.opposite.data) + from);
          own[u] = W{0};
          if constexpr (kRule != GradientRule::product)
            own[u] = wide_load(static_cast<const In*>(p.own.data) +
                               (in ? kept[0] + summed_of[u][0] + line * p.own.line + k[u] * p.own.other : 0));
        }
#pragma unroll
        for (int u = 0; u < kAhead; ++u) value[u] = share<kRule, kOwnIsA>(value[u], own[u], opposite[u]);
      }
      add_to_bins<kAhead>(sums, bin, value, lane, bits);
    }

    __syncthreads();
    // The lines of the block are written together, neighbouring threads to neighbouring elements.
    const int lines = static_cast<int>(min(p.lines - group * warps, int64_t{warps}));
    const bool along_k = (p.grad_k < 0 ? -p.grad_k : p.grad_k) < (p.grad_line < 0 ? -p.grad_line : p.grad_line);
    for (int e = static_cast<int>(threadIdx.x); e < bins * lines; e += static_cast<int>(blockDim.x)) {
      const int l = along_k ? e / bins : e % lines, k = along_k ? e % bins : e / lines;
      const W sum = all_sums[l * p.bins_stride + k];
      const int64_t out_line = group * warps + l, out_k = k_begin + k;
      if (p.splits > 1)
        static_cast<W*>(p.partial)[((split * p.kept.count + keep) * p.lines + out_line) * p.k + out_k] = sum;
      else
        store_sum(static_cast<In*>(p.grad) + kept[4] + out_line * p.grad_line + out_k * p.grad_k, sum);
    }
    __syncthreads();
  }
}

// Adds the splits in order.
template <class In>
__global__ void __launch_bounds__(256) add_splits(const __grid_constant__ SideArgs p) {
  using W = wide_t<In>;
  const int64_t count = p.kept.count * p.lines * p.k;
  for (int64_t at = blockIdx.x * int64_t{256} + threadIdx.x; at < count; at += gridDim.x * int64_t{256}) {
    W sum = W{0};
    for (int64_t s = 0; s < p.splits; ++s) sum += static_cast<const W*>(p.partial)[s * count + at];
    const int64_t k = at % p.k, line = at / p.k % p.lines;
    int64_t kept[5];
    p.kept.offsets(at / p.k / p.lines, kept);
    store_sum(static_cast<In*>(p.grad) + kept[4] + line * p.grad_line + k * p.grad_k, sum);
  }
}

}  // namespace tropical::cuda
