// Products by certified filtering, for the pairs and sizes where it pays; docs/certified-filtering.md.
#pragma once
#include <functional>

#include "cpu/loops.h"

namespace tropical::cpu {

// The kernels with which a product of this shape is filtered; null where it is not.
const FilterKernels* choose_filter(const MatmulParams& params);

// How often run_filtered goes over the outputs.
int64_t filter_passes(int64_t k);

// Computes a product whose `filter` is set. What cannot or should not be filtered (NaN, infinities of the best kind,
// data where too little is ruled out) is left to `plain`, a product without a filter at a time. Returns whether all
// that `plain` looked at was finite; what is filtered has no NaN.
bool run_filtered(const Product& product, int threads, const std::function<bool(const Product&)>& plain);

}  // namespace tropical::cpu
