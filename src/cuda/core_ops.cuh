// Core operations of the fast kernels: what one step of k does to a running result, two steps at a time.
//
//   core     element (T)           serves                              flagged: data that it cannot serve
//   float    float                 every semiring, f32                 none
//   double   double                every semiring, f64                 any candidate that is NaN
//   integer  int                   plus, i32                           entries out of range
//   pairs    two i16, f16 or bf16  plus on i16; all on f16, bf16       i16 out of range
//   bits     32 bools              or_and                              none
//
// Pairs hold neighbouring k, bits 32 of them; pack.cuh makes them. Where data are flagged, the generic kernel runs.
#pragma once
#include "elements.cuh"

namespace tropical::cuda {

// What a look at an operand's elements may find.
enum Fact : int { kNan = 1, kPosInf = 2, kNegInf = 4, kZero = 8, kOutOfRange = 16 };

// How float results are compared: by value with NaN the largest; as signed integers, right once the result is at least
// +0; as unsigned ones from the other end, right while every candidate is negative.
enum class Mode { value, positive, negative };

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
inline constexpr bool kThreeInputMax = true;
#else
inline constexpr bool kThreeInputMax = false;
#endif

__device__ __forceinline__ float max_nan(float a, float b) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a != a || a > b ? a : b;
#endif
}
__device__ __forceinline__ float min_nan(float a, float b) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a != a || a < b ? a : b;
#endif
}

// f32. Min semirings are the max ones of negated operands, since negation is free in the instructions.
template <class S_, bool kModes_>
struct FloatCore {
  using S = S_;
  using In = float;
  using T = float;
  using Q = float;
  static constexpr int kSteps = 1;  // elements of k in a T
  static constexpr bool kModes = kModes_ && makes_new_values_v<S>;
  static constexpr bool kFlagged = false;

  __device__ static T worst() { return MaxPlus::worst<float>(); }
  __device__ static T load(const float (&x)[1]) { return x[0]; }
  __device__ static float candidate(float a, float b) {
    if constexpr (is_plus_v<S>)
      return S::kIsMax ? a + b : -a - b;
    else if constexpr (is_times_v<S>)
      return S::kIsMax ? a * b : -a * b;
    else
      return S::kIsMax ? min_nan(a, b) : min_nan(-a, -b);
  }
  template <Mode kMode>
  __device__ static void step(T a0, T b0, T a1, T b1, T& c) {
    const float t0 = candidate(a0, b0), t1 = candidate(a1, b1);
    if constexpr (kMode == Mode::value)
      c = max_nan(max_nan(c, t0), t1);
    else if constexpr (kMode == Mode::positive)
      c = __int_as_float(__vimax3_s32(__float_as_int(c), __float_as_int(t0), __float_as_int(t1)));
    else
      c = __uint_as_float(__vimin3_u32(__float_as_uint(c), __float_as_uint(t0), __float_as_uint(t1)));
  }
  // By value, for plus; elements of B are cleaned before, so that no candidate is -0.
  __device__ static T cleaned(T b) { return (S::kIsMax ? b : -b) + 0.0f; }
  __device__ static void step_cleaned(T a0, T b0, T a1, T b1, T& c) {
    c = max_nan(max_nan(c, (S::kIsMax ? a0 : -a0) + b0), (S::kIsMax ? a1 : -a1) + b1);
  }
  __device__ static T merged(T x, T y) { return max_nan(x, y); }
  __device__ static Q result(T x) { return S::kIsMax ? x : -x; }
};

// f64. There is no maximum that propagates NaN at full speed, so data that make one are flagged.
template <class S_>
struct DoubleCore {
  using S = S_;
  using In = double;
  using T = double;
  using Q = double;
  static constexpr int kSteps = 1;
  static constexpr bool kModes = false;
  static constexpr bool kFlagged = true;

  __device__ static T worst() { return S::template worst<double>(); }
  __device__ static T load(const double (&x)[1]) { return x[0]; }
  __device__ static T merged(T x, T y) { return S::better(y, x) ? y : x; }
  __device__ static T candidate(T a, T b) {
    if constexpr (is_plus_v<S>)
      return a + b;
    else if constexpr (is_times_v<S>)
      return a * b;
    else
      return (S::kIsMax ? a < b : a > b) ? a : b;
  }
  template <Mode>
  __device__ static void step(T a0, T b0, T a1, T b1, T& c) {
    c = merged(c, candidate(a0, b0));
    c = merged(c, candidate(a1, b1));
  }
  __device__ static Q result(T x) { return x; }
  __device__ static int facts(double x) {
    return (x != x ? kNan : 0) | (x == highest<double>() ? kPosInf : 0) | (x == lowest<double>() ? kNegInf : 0) |
           (x == 0 ? kZero : 0);
  }
  TROPICAL_HD static bool flagged(int a, int b) {
    if ((a | b) & kNan) return true;
    const auto crossed = [&](int x, int y) { return ((a & x) && (b & y)) || ((b & x) && (a & y)); };
    if (is_plus_v<S>) return crossed(kPosInf, kNegInf);
    if (is_times_v<S>) return crossed(kPosInf | kNegInf, kZero);
    return false;
  }
};

// Integers under + whose finite entries are in range, infinities moved inwards (the mapped path of lowering.h).
template <class S_, class In_>
struct MappedIntegers {
  using S = S_;
  using In = In_;
  using L = Lowered<S, In, Path::mapped, false>;
  __device__ static In mapped(In x) { return x == S::template worst<In>() ? L::kInfinity : x; }
  __device__ static In restored(In x) {
    constexpr In edge = 2 * kPlusRange<In>;  // finite sums reach this far, infinite ones begin beyond
    return (S::kIsMax ? x < -edge : x > edge) ? S::template worst<In>() : x;
  }
  __device__ static int facts(In x) {
    return x == S::template worst<In>() || (x <= kPlusRange<In> && x >= -kPlusRange<In>) ? 0 : kOutOfRange;
  }
  TROPICAL_HD static bool flagged(int a, int b) { return ((a | b) & kOutOfRange) != 0; }
};

template <class S_>
struct IntegerCore : MappedIntegers<S_, int32_t> {
  using S = S_;
  using T = int;
  using Q = int32_t;
  static constexpr int kSteps = 1;
  static constexpr bool kModes = false;
  static constexpr bool kFlagged = true;

  __device__ static T worst() { return S::template worst<int32_t>(); }
  __device__ static T load(const int32_t (&x)[1]) { return IntegerCore::mapped(x[0]); }
  template <Mode>
  __device__ static void step(T a0, T b0, T a1, T b1, T& c) {
    if constexpr (S::kIsMax)
      c = __viaddmax_s32(a1, b1, __viaddmax_s32(a0, b0, c));
    else
      c = __viaddmin_s32(a1, b1, __viaddmin_s32(a0, b0, c));
  }
  __device__ static T merged(T x, T y) { return S::kIsMax ? max(x, y) : min(x, y); }
  __device__ static Q result(T x) { return IntegerCore::restored(x); }
};

template <class S_>
struct ShortPairs : MappedIntegers<S_, int16_t> {
  using S = S_;
  using T = uint32_t;
  using Q = int16_t;
  static constexpr int kSteps = 2;
  static constexpr bool kModes = false;
  static constexpr bool kFlagged = true;

  __device__ static T pair(int16_t low, int16_t high) {
    return static_cast<uint16_t>(low) | uint32_t{static_cast<uint16_t>(high)} << 16;
  }
  __device__ static T worst() { return pair(S::template worst<int16_t>(), S::template worst<int16_t>()); }
  __device__ static T load(const int16_t (&x)[2]) { return pair(ShortPairs::mapped(x[0]), ShortPairs::mapped(x[1])); }
  template <Mode>
  __device__ static void step(T a0, T b0, T a1, T b1, T& c) {
    if constexpr (S::kIsMax)
      c = __viaddmax_s16x2(a1, b1, __viaddmax_s16x2(a0, b0, c));
    else
      c = __viaddmin_s16x2(a1, b1, __viaddmin_s16x2(a0, b0, c));
  }
  __device__ static T merged(T x, T y) { return S::kIsMax ? __vmaxs2(x, y) : __vmins2(x, y); }
  __device__ static Q result(T x) {
    const auto low = static_cast<int16_t>(x & 0xffff), high = static_cast<int16_t>(x >> 16);
    return ShortPairs::restored((S::kIsMax ? low > high : low < high) ? low : high);
  }
};

// f16 and bf16: a rounded operation on halves is the rounded candidate; NaN propagates.
template <class S_, class In_>
struct HalfPairs {
  using S = S_;
  using In = In_;
  using T = uint32_t;
  using Q = float;
  using Pair = std::conditional_t<std::is_same_v<In, float16>, __half2, __nv_bfloat162>;
  static constexpr int kSteps = 2;
  static constexpr bool kModes = false;
  static constexpr bool kFlagged = false;

  __device__ static Pair as_pair(T x) { return *reinterpret_cast<Pair*>(&x); }
  __device__ static T as_bits(Pair x) { return *reinterpret_cast<T*>(&x); }
  __device__ static T worst() { return S::template worst<In>().bits * 0x10001u; }
  __device__ static T load(const In (&x)[2]) { return x[0].bits | uint32_t{x[1].bits} << 16; }
  __device__ static Pair candidate(T a, T b) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    if constexpr (is_plus_v<S>)
      return __hadd2_rn(as_pair(a), as_pair(b));
    else if constexpr (is_times_v<S>)
      return __hmul2_rn(as_pair(a), as_pair(b));
    else
      return S::kIsMax ? __hmin2_nan(as_pair(a), as_pair(b)) : __hmax2_nan(as_pair(a), as_pair(b));
#else
    return as_pair(a);
#endif
  }
  __device__ static Pair selected(Pair x, Pair y) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    return S::kIsMax ? __hmax2_nan(x, y) : __hmin2_nan(x, y);
#else
    return x;
#endif
  }
  template <Mode>
  __device__ static void step(T a0, T b0, T a1, T b1, T& c) {
    c = as_bits(selected(selected(as_pair(c), candidate(a0, b0)), candidate(a1, b1)));
  }
  __device__ static T merged(T x, T y) { return as_bits(selected(as_pair(x), as_pair(y))); }
  __device__ static Q result(T x) {
    const float low = half_to_float(In{static_cast<uint16_t>(x)}),
                high = half_to_float(In{static_cast<uint16_t>(x >> 16)});
    return S::kIsMax ? max_nan(low, high) : min_nan(low, high);
  }
};

struct BitCore {
  using S = OrAnd;
  using In = bool;
  using T = uint32_t;
  using Q = bool;
  static constexpr int kSteps = 32;
  static constexpr bool kModes = false;
  static constexpr bool kFlagged = false;

  __device__ static T worst() { return 0; }
  __device__ static T load(const uint8_t (&x)[32]) {
    T bits = 0;
#pragma unroll
    for (int i = 0; i < 32; ++i) bits |= (x[i] != 0 ? 1u : 0u) << i;
    return bits;
  }
  template <Mode>
  __device__ static void step(T a0, T b0, T a1, T b1, T& c) {
    c |= a0 & b0;
    c |= a1 & b1;
  }
  __device__ static T merged(T x, T y) { return x | y; }
  __device__ static Q result(T x) { return x != 0; }
};

// The core that serves a pair at speed; void: only the generic kernel does.
template <class S, class In>
struct CoreFor {
  using type = void;
};
template <class S>
struct CoreFor<S, float> {
  using type = FloatCore<S, true>;
};
template <class S>
struct CoreFor<S, double> {
  using type = DoubleCore<S>;
};
template <class S>
requires is_plus_v<S>
struct CoreFor<S, int32_t> {
  using type = IntegerCore<S>;
};
template <class S>
requires is_plus_v<S>
struct CoreFor<S, int16_t> {
  using type = ShortPairs<S>;
};
template <class S>
struct CoreFor<S, float16> {
  using type = HalfPairs<S, float16>;
};
template <class S>
struct CoreFor<S, bfloat16> {
  using type = HalfPairs<S, bfloat16>;
};
template <>
struct CoreFor<OrAnd, bool> {
  using type = BitCore;
};

}  // namespace tropical::cuda
