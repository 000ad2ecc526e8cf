// Sums of a few doubles of like sizes without rounding: 113 bits.
#pragma once

namespace tropical::testing {

#if defined(__SIZEOF_FLOAT128__)
__extension__ using Exact = __float128;
#else
using Exact = long double;  // of 113 bits where there is no other such type (AArch64)
#endif

}  // namespace tropical::testing
