// Exact tests for shared bytes between strided views.
#pragma once
#include "tropical_gemm/dlpack.h"

namespace tropical {

// True if some element of x and some element of y share a byte.
bool overlaps(const DLTensor& x, const DLTensor& y);

// True if two different elements of x share a byte (a stride of 0, or windows that run into each other).
bool overlaps_itself(const DLTensor& x);

}  // namespace tropical
