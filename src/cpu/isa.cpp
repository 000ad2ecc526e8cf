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
  const Kernels* found = nullptr;
  visit_dtype(dtype, [&]<class In>() { found = find_kernels_of<In>(semiring, path, argmax); });
  return found;
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
