// Certified filtering, as both backends see it: whether it is used, and what the last product did. The method and its
// proof are in docs/certified-filtering.md.
#pragma once
#include <atomic>

#include "params.h"
#include "tropical_gemm/matmul.h"

namespace tropical {

// What set_filter or the environment asked for. It is looked at once, for the params of a call.
Filtering filtering();
const char* filter_mode_name();
bool filter_recorded();
// What last_filter returns.
FilterReport& filter_report();

// Collects a report over the threads of one product, which counts each output once for each pass over k.
struct FilterTally {
  int64_t passes = 1;
  std::atomic<int64_t> filtered{0}, unproven{0};
};

// For tests alone: without its proof the filter returns wrong values, which a test must see.
inline std::atomic<bool> filter_without_proof{false};

}  // namespace tropical
