// The machine's limit: loops over registers alone, one (mul, add) pair of a semiring after the other, without memory.
#pragma once
#include <cstdint>
#include <string>

namespace tropical::bench {

// The instructions of one pair: inner operation, outer operation, element.
// fma_max adds by a fused multiply-add with a factor of one, which is exact and may run on other units than an
// addition.
enum class Loop {
  add_max_f32,
  add_max_f64,
  add_max_i16,
  add_max_i32,
  add_max_i64,
  mul_max_f32,
  min_max_f32,
  fma_max_f32,
  fma_max_f64,
  and_or
};

struct RegisterLoop {
  void (*run)(int64_t steps) = nullptr;
  double pairs_per_step = 0;
  const char* width = "";  // of the instructions: "zmm", "ymm", "generic"
};

// The fastest loop over the instruction widths of an instruction set ("AVX-512", "AVX2"; a portable loop for any
// other). Measured at the first call for a pair of arguments, remembered after.
const RegisterLoop& register_limit(Loop loop, const std::string& isa);

}  // namespace tropical::bench
