// Which instruction set runs, and the kernels it has.
#include "cpu/isa.h"

#include <hwy/highway.h>

#include <cstdlib>
#include <mutex>

#include "cpu/backend.h"
#include "cpu/kernels.h"
#include "tropical_gemm/error.h"
#include "visit.h"

namespace tropical::cpu {

// One per element type, each from the file that CMake makes of kernels.cpp.in.
#define TG_DECLARE(name) const Kernels* find_kernels_##name(Semiring semiring, Path path, bool argmax);
TG_DECLARE(f32)
TG_DECLARE(f64)
TG_DECLARE(f16)
TG_DECLARE(bf16)
TG_DECLARE(i16)
TG_DECLARE(i32)
TG_DECLARE(i64)
TG_DECLARE(boolean)
#undef TG_DECLARE

namespace {

struct Isa {
  int64_t target;
  const char* name;
};
// Best first, after Highway's order of targets.
constexpr Isa kIsas[] = {
#if HWY_ARCH_X86
    {HWY_AVX3, "AVX-512"},
    {HWY_AVX2, "AVX2"},
#elif HWY_ARCH_ARM
    {HWY_NEON, "NEON"},
#endif
    {HWY_EMU128, "baseline"},
    {HWY_SCALAR, "baseline"},
};

// What the machine has, read before any choice hides a part of it.
int64_t machine() {
  static const int64_t targets = HWY_TARGETS & hwy::SupportedTargets();
  return targets;
}

std::string folded(std::string_view s) {
  std::string f;
  for (const char c : s)
    if (c != '-' && c != '_') f += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return f;
}

void choose(std::string_view name) {
  int64_t chosen = 0;  // all
  std::string known;
  for (const Isa& isa : kIsas) {
    if (!(machine() & isa.target)) continue;
    if (folded(isa.name) == folded(name)) chosen = isa.target;
    known += (known.empty() ? "" : ", ") + std::string(isa.name);
  }
  if (!chosen && !name.empty())
    throw Error(ErrorCode::invalid_value,
                "instruction set '" + std::string(name) + "' is not available, expected one of " + known);
  hwy::SetSupportedTargetsForTest(chosen);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// The environment's choice, before the first use of any kind.
}  // namespace

void start_isa() {
  static std::once_flag once;
  std::call_once(once, [] {
    machine();
    const char* wanted = std::getenv("TROPICAL_GEMM_ISA");
    choose(wanted ? wanted : "");
  });
}

const Kernels* find_kernels(Semiring semiring, DType dtype, Path path, bool argmax) {
  start_isa();
  switch (dtype) {
    case DType::f32:
      return find_kernels_f32(semiring, path, argmax);
    case DType::f64:
      return find_kernels_f64(semiring, path, argmax);
    case DType::f16:
      return find_kernels_f16(semiring, path, argmax);
    case DType::bf16:
      return find_kernels_bf16(semiring, path, argmax);
    case DType::i16:
      return find_kernels_i16(semiring, path, argmax);
    case DType::i32:
      return find_kernels_i32(semiring, path, argmax);
    case DType::i64:
      return find_kernels_i64(semiring, path, argmax);
    case DType::boolean:
      return find_kernels_boolean(semiring, path, argmax);
  }
  return nullptr;
}

std::vector<std::string> isas() {
  std::vector<std::string> names;
  for (const Isa& isa : kIsas)
    if (machine() & isa.target) names.push_back(isa.name);
  return names;
}

std::string isa() {
  start_isa();
  for (const Isa& isa : kIsas)
    if (hwy::SupportedTargets() & HWY_TARGETS & isa.target) return isa.name;
  return "unknown";
}

void set_isa(std::string_view name) {
  start_isa();
  choose(name);
}

}  // namespace tropical::cpu
