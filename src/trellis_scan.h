// All values of the Viterbi recurrence by products of matrices in log-many rounds, on either backend.
#pragma once
#include <algorithm>

#include "params.h"

namespace tropical {

// The matrices of all levels that a scan of n steps needs, n of them at level 0.
inline int64_t scan_matrices(int64_t n) {
  int64_t all = 0;
  for (; n > 0; n /= 2) all += n;
  return all;
}

// With v[t] = v[t-1] M[t-1] over max-plus for t = 1, ..., n: from v[0] and M to all v.
//   history   v, (step, batch, state), `step_size` elements from step to step, `row` from sequence to sequence; v[0] is
//             there
//   matrices  (batch, n, from, to) of M, then room for the other levels
//   multiply  runs the product of its MatmulParams
// Upwards, level l + 1 holds the products of neighbours of level l; downwards, every second vector of a level is one
// vector-matrix product away from one that is known. Source: G. Blelloch, Prefix sums and their applications (1990).
template <class F, class Multiply>
void scan_values(F* history, int64_t step_size, int64_t row, int64_t batch, int64_t states, int64_t n, F* matrices,
                 const Multiply& multiply) {
  if (n == 0) return;
  const int64_t square = states * states;
  MatmulParams p;
  p.semiring = Semiring::max_plus;
  p.dtype = TypeInfo<F>::kId;
  p.n = p.k = states;
  const auto run = [&](int64_t rows, int64_t count, Operand a, Operand b, Operand c) {
    p.m = rows;
    p.batch = {2, {batch, count}};
    p.a = a, p.b = b, p.c = c;
    if (count > 0) multiply(p);
  };
  // Matrices first, first + every, ... of a level of `count`; vectors likewise.
  const auto level_matrices = [&](F* level, int64_t count, int64_t first, int64_t every) {
    return Operand{level + first * square, states, 1, {count * square, every * square}};
  };
  const auto vectors = [&](int64_t first, int64_t every) {
    return Operand{history + first * step_size, row, 1, {row, every * step_size}};
  };
  F* level = matrices;
  int64_t count = n, span = 1;
  for (; count > 1; span *= 2) {
    F* above = level + batch * count * square;
    run(states, count / 2, level_matrices(level, count, 0, 2), level_matrices(level, count, 1, 2),
        level_matrices(above, count / 2, 0, 1));
    level = above;
    count /= 2;
  }
  for (; span > 0; span /= 2) {
    run(1, (count + 1) / 2, vectors(0, 2 * span), level_matrices(level, count, 0, 2), vectors(span, 2 * span));
    if (span == 1) break;
    count = n / (span / 2);
    level -= batch * count * square;
  }
}

}  // namespace tropical
