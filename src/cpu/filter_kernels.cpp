#include "cpu/filter_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/filter_kernels.cpp"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target
#include "cpu/filter-inl.h"

#if HWY_ONCE
#include "cpu/isa.h"
// clang-format on

namespace tropical::cpu {

HWY_EXPORT(FindFilter);

const FilterKernels* find_filter(Semiring semiring, DType dtype) {
  start_isa();
  return HWY_DYNAMIC_DISPATCH(FindFilter)(semiring, dtype);
}

}  // namespace tropical::cpu
#endif
