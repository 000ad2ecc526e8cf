// Elements on the device: what is loaded, how a candidate is made, which one is selected, what is stored.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "lowering.h"

namespace tropical::cuda {

// Whether a kernel's work has been done already (Call::done).
__device__ inline bool is_done(const int* done) { return done && *done; }

__device__ inline float half_to_float(float16 x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ inline float half_to_float(bfloat16 x) { return __uint_as_float(uint32_t{x.bits} << 16); }

// A float rounded to the half type, as a float again.
template <class In>
__device__ inline float round_through(float x) {
  if constexpr (std::is_same_v<In, float16>)
    return __half2float(__float2half_rn(x));
  else
    return __bfloat162float(__float2bfloat16_rn(x));
}
template <class In>
__device__ inline In round_to_half(float x) {
  if constexpr (std::is_same_v<In, float16>)
    return {__half_as_ushort(__float2half_rn(x))};
  else
    return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
}

// The generic kernel's row of the lowering table: exact whatever the data are.
template <class S, class In, bool kArgmax>
using Generic = Lowered<S, In,
                        is_float_v<In>                                       ? Path::careful
                        : std::is_same_v<In, bool> || !makes_new_values_v<S> ? Path::plain
                        : std::is_same_v<In, int64_t>                        ? Path::careful
                                                                             : Path::wide,
                        kArgmax || std::is_same_v<In, bool>>;

// Exact on the device without the header's division.
__device__ inline int64_t saturating_mul_device(int64_t a, int64_t b) {
  const int64_t low = static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  const int64_t high = __mul64hi(a, b);
  if (high == (low >> 63)) return low;
  return high < 0 ? lowest<int64_t>() : highest<int64_t>();
}

template <class L, bool kArgmax>
struct Elements {
  using S = typename L::S;
  using In = typename L::In;
  using T = typename L::T;
  using Core = typename L::Core;
  // Outputs are combined and compared in Q: floats in the compute type, integers in their own.
  using Q = std::conditional_t<is_float_v<In>, T, In>;

  __device__ static T load(Stored<In> x) {
    if constexpr (is_half_v<In>)
      return half_to_float(x);
    else if constexpr (std::is_same_v<In, bool>)
      return x != 0;
    else if constexpr (L::kMapsInfinity)
      return x == S::template worst<In>() ? L::kInfinity : static_cast<T>(x);
    else
      return x;
  }

  // One candidate, in the form in which candidates are compared.
  __device__ static T candidate(T a, T b) {
    if constexpr (std::is_same_v<In, bool>) {
      return a < b ? a : b;
    } else if constexpr (L::kPath == Path::wide) {
      const T x = is_plus_v<S> ? a + b : a * b;
      return kArgmax ? clamped(x) : x;
    } else if constexpr (std::is_same_v<T, int64_t> && is_times_v<S>) {
      return saturating_mul_device(a, b);
    } else {
      const T x = Core::mul(a, b);
      if constexpr (is_half_v<In> && kArgmax && makes_new_values_v<S>)
        return round_through<In>(x);
      else
        return x;
    }
  }

  // x replaces the running result: strictly better, or the first NaN.
  __device__ static bool selects(T x, T best) {
    const bool better = S::kIsMax ? x > best : x < best;
    if constexpr (!is_float_v<T>)
      return better;
    else if constexpr (kArgmax)
      return better || (x != x && best == best);
    else
      return better || x != x;  // any later NaN is as good
  }

  __device__ static T worst() {
    if constexpr (std::is_same_v<In, bool>)
      return 0;
    else
      return S::template worst<T>();
  }
  __device__ static Q zero() {
    if constexpr (is_half_v<In>)
      return half_to_float(S::template zero<In>());
    else
      return S::template zero<In>();
  }
  __device__ static Q result(T x) {
    if constexpr (is_half_v<In>)
      return round_through<In>(x);
    else if constexpr (L::kPath == Path::wide)
      return static_cast<Q>(clamped(x));
    else
      return static_cast<Q>(x);
  }

 private:
  __device__ static T clamped(T x) {
    constexpr T low = lowest<In>(), high = highest<In>();
    return x < low ? low : x > high ? high : x;
  }
};

// Outputs: a running result and its index against what C holds, then canonical elements in memory.
template <class S, class In, class Q>
struct Output {
  __device__ static Q load(const Stored<In>* c) {
    if constexpr (is_half_v<In>)
      return half_to_float(*c);
    else if constexpr (std::is_same_v<In, bool>)
      return *c != 0;
    else
      return *c;
  }
  __device__ static void store(Stored<In>* c, Q x) {
    if constexpr (is_half_v<In>)
      *c = x != x ? canonical(In{0x7fff}) : round_to_half<In>(x + 0.0f);
    else
      *c = canonical(static_cast<In>(x));
  }
  __device__ static bool selects(Q x, Q old) {
    const bool better = S::kIsMax ? x > old : x < old;
    if constexpr (std::is_floating_point_v<Q>)
      return better || (x != x && old == old);
    else
      return better;
  }
  // `index` counts from 0; where nothing was selected it is, or becomes, -1.
  template <bool kArgmax>
  __device__ static void finish(Q x, Q zero, int64_t index, Stored<In>* c, int32_t* argmax, bool accumulate,
                                int32_t offset) {
    if (accumulate) {
      const Q old = load(c);
      if (!selects(x, old)) {
        store(c, old);
        return;
      }
    }
    store(c, x);
    if constexpr (kArgmax) *argmax = index < 0 || (S::kMasks && x == zero) ? -1 : static_cast<int32_t>(index) + offset;
  }
};

}  // namespace tropical::cuda
