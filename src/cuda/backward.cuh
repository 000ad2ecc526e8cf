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

// Shared memory of a block: for each of its warps the sums, and a part of the outputs on its way to them.
inline constexpr int kGradientTile = 256, kGradientPitch = kGradientTile + 4, kPeerSlots = 512;
TROPICAL_HD constexpr int64_t gradient_bytes(int warps, int64_t bins_stride, int item) {
  return warps * (bins_stride * item + kGradientPitch * (item + int64_t{sizeof(int)}) + kPeerSlots * int64_t{4});
}

// The sums of one warp. Each call of add() takes a value and a bin (-1: none) from every lane, and those that meet in a
// bin take turns in the order of the lanes. A bin that many lanes met in is summed in their registers from then on.
template <class W>
class WarpSums {
 public:
  // `peers` tells each lane who may share its bin (bins that differ by a multiple of kPeerSlots pass for the same); it
  // is zero before and after.
  __device__ WarpSums(W* sums, unsigned* peers, int lane) : sums_(sums), peers_(peers), lane_(lane) {}

  __device__ __forceinline__ void add(int bin, W value) {
    if (bin == hot_) hot_sum_ += value, bin = -1;
    unsigned* const slot = peers_ + (bin & (kPeerSlots - 1));
    if (bin >= 0) atomicOr(slot, 1u << lane_);
    __syncwarp();
    const int turn = bin >= 0 ? __popc(*slot & ((1u << lane_) - 1)) : -1;
    __syncwarp();
    if (bin >= 0) *slot = 0;
    int turns = 0;
    for (; __any_sync(~0u, turn >= turns); ++turns) {
      if (turn == turns) sums_[bin] += value;
      __syncwarp();
    }
    if (turns > most_turns_) {
      flush();
      const unsigned last = __ballot_sync(~0u, turn == turns - 1);
      hot_ = __shfl_sync(~0u, bin, __ffs(static_cast<int>(last)) - 1);
      most_turns_ = turns;
    }
  }
  // To be called at the end: what registers hold joins its bin.
  __device__ __forceinline__ void flush() {
#pragma unroll
    for (int d = 16; d > 0; d /= 2) hot_sum_ += __shfl_xor_sync(~0u, hot_sum_, d);
    if (lane_ == 0 && hot_ >= 0) sums_[hot_] += hot_sum_;
    hot_sum_ = W{0};
    __syncwarp();
  }

 private:
  W* const sums_;
  unsigned* const peers_;
  const int lane_;
  int hot_ = -2, most_turns_ = 4;
  W hot_sum_ = W{0};
};

template <GradientRule kRule, class In, bool kOwnIsA>
__global__ void __launch_bounds__(256, 2) gradient_sums(const __grid_constant__ SideArgs p) {
  using W = wide_t<In>;
  constexpr int kEach = kGradientTile / 32;  // outputs of a tile that a thread loads
  extern __shared__ __align__(16) unsigned char shared[];
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  W* const all_sums = reinterpret_cast<W*>(shared);
  W* const values = all_sums + warps * p.bins_stride;
  int* const bin_of = reinterpret_cast<int*>(values + warps * kGradientPitch);
  unsigned* const peers = reinterpret_cast<unsigned*>(bin_of + warps * kGradientPitch) + warp * kPeerSlots;
  W* const sums = all_sums + warp * p.bins_stride;
  for (int slot = lane; slot < kPeerSlots; slot += 32) peers[slot] = 0;
  // Neighbouring threads load neighbours in memory.
  const auto size = [](int64_t x) { return x < 0 ? -x : x; };
  const bool along_lines = size(p.argmax.line) < size(p.argmax.other);
  const int own_line = along_lines ? thread % warps : warp, own_x = along_lines ? thread / warps : lane;
  const int staged = own_line * kGradientPitch + own_x;
  const int64_t groups = (p.lines + warps - 1) / warps, k_blocks = (p.k + p.bins - 1) / p.bins;
  const int64_t tiles = (p.across + kGradientTile - 1) / kGradientTile, range = tiles * p.summed.count;

  for (int64_t work = blockIdx.x; work < p.kept.count * groups * k_blocks * p.splits; work += gridDim.x) {
    const int64_t group = work % groups, k_block = work / groups % k_blocks;
    const int64_t split = work / groups / k_blocks % p.splits, keep = work / groups / k_blocks / p.splits;
    const int64_t line = group * warps + own_line;
    const int64_t k_begin = k_block * p.bins;
    const int bins = static_cast<int>(min(p.k - k_begin, int64_t{p.bins}));
    int64_t kept[5];
    p.kept.offsets(keep, kept);
    for (int k = lane; k < bins; k += 32) sums[k] = W{0};
    WarpSums<W> warp_sums(sums, peers, lane);

    const int64_t begin = range * split / p.splits, end = range * (split + 1) / p.splits;
    int64_t member = begin / tiles, tile = begin % tiles, summed[4];
    p.summed.offsets(member, summed);
    int64_t k[kEach] = {};
    W value[kEach] = {};
    int held = 0, sets = 0;  // of this thread, and of the tile in steps of a warp
    const auto bin = [&](int e) {
      return e < held && k[e] >= k_begin && k[e] < k_begin + bins ? static_cast<int>(k[e] - k_begin) : -1;
    };
    // Loads without a branch in between, so that all are in flight at once; a thread that has nothing to load reads the
    // first element.
    const auto fetch = [&] {
      const int64_t x = tile * kGradientTile + own_x, left = p.across - tile * kGradientTile;
      sets = static_cast<int>(min((left + 31) / 32, int64_t{kEach}));
      held = line < p.lines ? static_cast<int>(min((left - own_x + 31) / 32, int64_t{kEach})) : 0;
      const int64_t arg_at = kept[3] + summed[3] + line * p.argmax.line + x * p.argmax.other;
      const int64_t grad_at = kept[2] + summed[2] + line * p.grad_c.line + x * p.grad_c.other;
      const auto from = [&](int64_t at, int64_t step, int e) { return e < held ? at + e * 32 * step : 0; };
      if (p.argmax_is_int64) {
#pragma unroll
        for (int e = 0; e < kEach; ++e)
          k[e] = static_cast<const int64_t*>(p.argmax.data)[from(arg_at, p.argmax.other, e)];
      } else {
#pragma unroll
        for (int e = 0; e < kEach; ++e)
          k[e] = static_cast<const int32_t*>(p.argmax.data)[from(arg_at, p.argmax.other, e)];
      }
#pragma unroll
      for (int e = 0; e < kEach; ++e)
        value[e] = wide_load(static_cast<const In*>(p.grad_c.data) + from(grad_at, p.grad_c.other, e));
      if constexpr (kRule != GradientRule::one) {
        W own[kEach], opposite[kEach];
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
          const bool in = bin(e) >= 0;
          opposite[e] =
              wide_load(static_cast<const In*>(p.opposite.data) +
                        (in ? kept[1] + summed[1] + (x + e * 32) * p.opposite.line + k[e] * p.opposite.other : 0));
          own[e] = W{0};
          if constexpr (kRule != GradientRule::product)
            own[e] = wide_load(static_cast<const In*>(p.own.data) +
                               (in ? kept[0] + summed[0] + line * p.own.line + k[e] * p.own.other : 0));
        }
#pragma unroll
        for (int e = 0; e < kEach; ++e) value[e] = share<kRule, kOwnIsA>(value[e], own[e], opposite[e]);
      }
      if (++tile == tiles) {
        tile = 0;
        p.summed.offsets(++member, summed);
      }
    };
    if (begin < end) fetch();
    for (int64_t at = begin; at < end; ++at) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) values[staged + e * 32] = value[e], bin_of[staged + e * 32] = bin(e);
      const int steps = sets;
      __syncthreads();
      if (at + 1 < end) fetch();
      for (int s = 0; s < steps; ++s) {
        const int from = warp * kGradientPitch + s * 32 + lane;
        warp_sums.add(bin_of[from], values[from]);
      }
      __syncthreads();
    }

    warp_sums.flush();
    __syncthreads();
    // The lines of the block are written together, neighbouring threads to neighbouring elements.
    const bool along_k = size(p.grad_k) < size(p.grad_line);
    const int out = along_k ? warp : thread % warps;
    const int64_t out_line = group * warps + out;
    if (out_line < p.lines) {
      for (int e = along_k ? lane : thread / warps; e < bins; e += 32) {
        const W sum = all_sums[out * p.bins_stride + e];
        if (p.splits > 1)
          static_cast<W*>(p.partial)[((split * p.kept.count + keep) * p.lines + out_line) * p.k + k_begin + e] = sum;
        else
          store_sum(static_cast<In*>(p.grad) + kept[4] + out_line * p.grad_line + (k_begin + e) * p.grad_k, sum);
      }
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
