#include "register_limit.h"

#include <map>
#include <utility>
#include <vector>

#include "measure.h"

namespace tropical::bench {
namespace {

#if defined(__x86_64__)

// Any finite floats: a subnormal or NaN left in a register could cost extra.
alignas(64) constexpr float kSources[32] = {
    0.5f,  1.25f, -0.75f, 2.0f,  1.5f,   -3.0f, 0.25f, 1.0f,  0.875f, 4.0f,  -1.5f, 2.5f,  3.0f,  -0.5f, 1.75f, 0.625f,
    1.25f, 0.5f,  1.0f,   -2.0f, 0.375f, 3.5f,  -1.0f, 0.75f, 2.25f,  -0.5f, 1.5f,  -1.5f, 0.25f, 2.0f,  0.5f,  1.0f};

// The accumulators are so many that no latency shows. Register 13 is the candidate, 14 and 15 are its operands, 12 is
// spare. Assembly, so that no compiler hoists the loop-invariant candidate or reorders the instructions.
#define TG_ACCUMULATORS_24 "0,1,2,3,4,5,6,7,8,9,10,11,16,17,18,19,20,21,22,23,24,25,26,27"
#define TG_ACCUMULATORS_12 "0,1,2,3,4,5,6,7,8,9,10,11"
#define TG_LOW_CLOBBERS                                                                                               \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14", "xmm15", "cc"
#define TG_HIGH_CLOBBERS \
  "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27"

#define TG_LOOP(name, isa, reg, source_step, accumulators, body, ...)                                                 \
  __attribute__((target(isa))) void name(int64_t steps) {                                                             \
    const float* sources = kSources;                                                                                  \
    asm volatile("vmovups (%1), %%" reg "14\n vmovups " source_step "(%1), %%" reg "15\n vmovaps %%" reg "14, %%" reg \
                 "12\n"                                                                                               \
                 ".irp r," accumulators "\n vmovaps %%" reg "14, %%" reg                                              \
                 "\\r\n .endr\n"                                                                                      \
                 ".p2align 6\n"                                                                                       \
                 "1:\n .irp r," accumulators "\n" body                                                                \
                 "\n .endr\n"                                                                                         \
                 "dec %0\n jnz 1b\n vzeroupper"                                                                       \
                 : "+r"(steps)                                                                                        \
                 : "r"(sources), "m"(kSources)                                                                        \
                 : __VA_ARGS__);                                                                                      \
  }
#define TG_PLAIN(reg, op) op " %%" reg "14, %%" reg "15, %%" reg "13\n "
// a * factor + b by one instruction, which overwrites one of its operands.
#define TG_FUSED(reg, op) "vmovaps %%" reg "14, %%" reg "13\n " op " %%" reg "12, %%" reg "15, %%" reg "13\n "
#define TG_SELECT(reg, op) op " %%" reg "13, %%" reg "\\r, %%" reg "\\r"
#define TG_ZMM(name, body) \
  TG_LOOP(name##_zmm, "avx512f", "zmm", "64", TG_ACCUMULATORS_24, body, TG_LOW_CLOBBERS, TG_HIGH_CLOBBERS)
#define TG_YMM(name, body) \
  TG_LOOP(name##_ymm, "avx512f,avx512vl", "ymm", "32", TG_ACCUMULATORS_24, body, TG_LOW_CLOBBERS, TG_HIGH_CLOBBERS)
#define TG_AVX2(name, body) TG_LOOP(name##_avx2, "avx2", "ymm", "32", TG_ACCUMULATORS_12, body, TG_LOW_CLOBBERS)
#define TG_AVX512(name, INNER, inner, outer)                \
  TG_ZMM(name, INNER("zmm", inner) TG_SELECT("zmm", outer)) \
  TG_YMM(name, INNER("ymm", inner) TG_SELECT("ymm", outer))
#define TG_BOTH(name, INNER, inner, outer) \
  TG_AVX512(name, INNER, inner, outer)     \
  TG_AVX2(name, INNER("ymm", inner) TG_SELECT("ymm", outer))

TG_BOTH(add_max_f32, TG_PLAIN, "vaddps", "vmaxps")
TG_BOTH(add_max_f64, TG_PLAIN, "vaddpd", "vmaxpd")
TG_BOTH(add_max_i16, TG_PLAIN, "vpaddw", "vpmaxsw")
TG_BOTH(add_max_i32, TG_PLAIN, "vpaddd", "vpmaxsd")
TG_BOTH(mul_max_f32, TG_PLAIN, "vmulps", "vmaxps")
TG_BOTH(min_max_f32, TG_PLAIN, "vminps", "vmaxps")
TG_BOTH(fma_max_f32, TG_FUSED, "vfmadd132ps", "vmaxps")
TG_BOTH(fma_max_f64, TG_FUSED, "vfmadd132pd", "vmaxpd")
TG_AVX512(add_max_i64, TG_PLAIN, "vpaddq", "vpmaxsq")
// AVX2 has no maximum of 64-bit integers.
TG_AVX2(add_max_i64, TG_PLAIN("ymm", "vpaddq")  //
        "vpcmpgtq %%ymm\\r, %%ymm13, %%ymm12\n vblendvpd %%ymm12, %%ymm13, %%ymm\\r, %%ymm\\r")
TG_AVX512(and_or, TG_PLAIN, "vpandd", "vpord")
TG_AVX2(and_or, TG_PLAIN("ymm", "vpand") TG_SELECT("ymm", "vpor"))

struct Candidate {
  const char* isa;
  Loop loop;
  RegisterLoop program;
};
#define TG_CANDIDATES(name, bits)                                        \
  {"AVX-512", Loop::name, {name##_zmm, 24.0 * 512 / (bits), "zmm"}},     \
      {"AVX-512", Loop::name, {name##_ymm, 24.0 * 256 / (bits), "ymm"}}, \
      {"AVX2", Loop::name, {name##_avx2, 12.0 * 256 / (bits), "ymm"}},
constexpr Candidate kCandidates[] = {TG_CANDIDATES(add_max_f32, 32)  //
                                     TG_CANDIDATES(add_max_f64, 64)  //
                                     TG_CANDIDATES(add_max_i16, 16)  //
                                     TG_CANDIDATES(add_max_i32, 32)  //
                                     TG_CANDIDATES(add_max_i64, 64)  //
                                     TG_CANDIDATES(mul_max_f32, 32)  //
                                     TG_CANDIDATES(min_max_f32, 32)  //
                                     TG_CANDIDATES(fma_max_f32, 32)  //
                                     TG_CANDIDATES(fma_max_f64, 64)  //
                                     TG_CANDIDATES(and_or, 1)};

std::vector<RegisterLoop> tuned_loops(Loop loop, const std::string& isa) {
  std::vector<RegisterLoop> found;
  for (const Candidate& c : kCandidates)
    if (c.loop == loop && c.isa == isa) found.push_back(c.program);
  return found;
}

#else

std::vector<RegisterLoop> tuned_loops(Loop, const std::string&) { return {}; }

#endif

// The portable loop, on the 128-bit vectors of GCC and clang. The empty assembly makes its operand unknown, so that the
// candidate is computed anew each time.
#if defined(__x86_64__)
#define TG_VECTOR_REGISTER "x"
#elif defined(__aarch64__)
#define TG_VECTOR_REGISTER "w"
#else
#define TG_VECTOR_REGISTER "m"
#endif

template <class T>
struct Vector {
  typedef T type __attribute__((vector_size(16)));
};

template <class T, class Inner, class Outer>
void generic_loop(int64_t steps) {
  using V = typename Vector<T>::type;
  constexpr int kAccumulators = 12;
  V a = V{} + T{1}, b = V{} + T{2}, acc[kAccumulators] = {};
  for (; steps > 0; --steps) {
#pragma GCC unroll 12
    for (int r = 0; r < kAccumulators; ++r) {
      asm volatile("" : "+" TG_VECTOR_REGISTER(a));
      acc[r] = Outer{}(acc[r], Inner{}(a, b));
    }
  }
  for (V& v : acc) asm volatile("" : "+" TG_VECTOR_REGISTER(v));
}

constexpr auto kAdd = [](auto a, auto b) { return a + b; };
constexpr auto kMul = [](auto a, auto b) { return a * b; };
constexpr auto kMulAdd = [](auto a, auto b) { return a * b + b; };
constexpr auto kMin = [](auto a, auto b) { return a < b ? a : b; };
constexpr auto kMax = [](auto a, auto b) { return a > b ? a : b; };
constexpr auto kAnd = [](auto a, auto b) { return a & b; };
constexpr auto kOr = [](auto a, auto b) { return a | b; };

template <class T>
RegisterLoop generic(auto inner, auto outer, double bits = 8 * sizeof(T)) {
  return {generic_loop<T, decltype(inner), decltype(outer)>, 12 * 128 / bits, "generic"};
}

RegisterLoop generic_for(Loop loop) {
  switch (loop) {
    case Loop::add_max_f32:
      return generic<float>(kAdd, kMax);
    case Loop::add_max_f64:
      return generic<double>(kAdd, kMax);
    case Loop::add_max_i16:
      return generic<int16_t>(kAdd, kMax);
    case Loop::add_max_i32:
      return generic<int32_t>(kAdd, kMax);
    case Loop::add_max_i64:
      return generic<int64_t>(kAdd, kMax);
    case Loop::mul_max_f32:
      return generic<float>(kMul, kMax);
    case Loop::min_max_f32:
      return generic<float>(kMin, kMax);
    case Loop::fma_max_f32:
      return generic<float>(kMulAdd, kMax);
    case Loop::fma_max_f64:
      return generic<double>(kMulAdd, kMax);
    case Loop::and_or:
      return generic<int32_t>(kAnd, kOr, 1);
  }
  return {};
}

RegisterLoop fastest(Loop loop, const std::string& isa) {
  std::vector<RegisterLoop> candidates = tuned_loops(loop, isa);
  if (candidates.empty()) candidates.push_back(generic_for(loop));
  constexpr int64_t kSteps = 10'000;
  RegisterLoop best;
  double best_rate = 0;
  for (const RegisterLoop& c : candidates) {
    const double rate = c.pairs_per_step / time_alone({[&] { c.run(kSteps); }, 0, 0.01});
    if (rate > best_rate) best = c, best_rate = rate;
  }
  return best;
}

}  // namespace

const RegisterLoop& register_limit(Loop loop, const std::string& isa) {
  static std::map<std::pair<Loop, std::string>, RegisterLoop> known;
  const auto [entry, is_new] = known.try_emplace({loop, isa});
  if (is_new) entry->second = fastest(loop, isa);
  return entry->second;
}

}  // namespace tropical::bench
