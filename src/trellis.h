// What both backends say of a trellis: which candidate is taken, and where a sequence ends.
#pragma once
#include "params.h"

namespace tropical {

// x replaces the candidate taken so far: better, or the first NaN.
template <class F>
TROPICAL_HD constexpr bool takes(F x, F best) {
  return x > best || (x != x && best == best);
}

// How many steps of sequence b count.
TROPICAL_HD constexpr int64_t length_of(const ViterbiParams& p, int64_t b) {
  if (!p.lengths.data) return p.steps;
  const int64_t at = b * p.lengths.stride[0];
  const int64_t n = p.lengths_are_int64 ? static_cast<const int64_t*>(p.lengths.data)[at]
                                        : static_cast<const int32_t*>(p.lengths.data)[at];
  return n < 0 ? 0 : n > p.steps ? p.steps : n;
}

TROPICAL_HD constexpr void set_path(const ViterbiParams& p, int64_t b, int64_t t, int64_t state) {
  const int64_t at = b * p.paths.stride[0] + t * p.paths.stride[1];
  if (p.paths_are_int64)
    static_cast<int64_t*>(p.paths.data)[at] = state;
  else
    static_cast<int32_t*>(p.paths.data)[at] = static_cast<int32_t>(state);
}

// One matrix of transitions serves all steps: it is copied once, in the type of the recurrence, and so is its transpose.
TROPICAL_HD constexpr bool steps_share(const ViterbiParams& p) { return p.transition.stride[1] == 0; }
// One matrix of transitions serves all sequences.
TROPICAL_HD constexpr bool sequences_share(const ViterbiParams& p) { return p.transition.stride[0] == 0; }

}  // namespace tropical
