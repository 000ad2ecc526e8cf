// The oracle of the C++ tests: plain loops over the scalar operations of semiring.h.
#pragma once
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "params.h"
#include "visit.h"

namespace tropical::reference {

// x replaces y as the running result: strictly better, or the first NaN.
template <class S, class T>
bool selects(T x, T y) {
  return S::better(x, y) || (is_nan(x) && !is_nan(y));
}

template <class S, class T>
void matmul(const MatmulParams& p) {
  const int64_t batches = p.batch.count();
  for (int64_t g = 0; g < batches; ++g) {
    const T* a = static_cast<const T*>(p.a.data) + p.batch.offset(p.a, g);
    const T* b = static_cast<const T*>(p.b.data) + p.batch.offset(p.b, g);
    T* c = static_cast<T*>(p.c.data) + p.batch.offset(p.c, g);
    int32_t* arg = p.argmax.data ? static_cast<int32_t*>(p.argmax.data) + p.batch.offset(p.argmax, g) : nullptr;
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        T best = S::template zero<T>();
        int64_t index = -1;
        for (int64_t k = 0; k < p.k; ++k) {
          const T x = S::mul(a[i * p.a.row + k * p.a.col], b[k * p.b.row + j * p.b.col]);
          if (k == 0 || selects<S>(x, best)) best = x, index = k;
        }
        // `!(a better b) && !(b better a)` is equality that works for the half types too.
        const T zero = S::template zero<T>();
        if (S::kMasks && !is_nan(best) && !S::better(best, zero) && !S::better(zero, best)) index = -1;
        T& out = c[i * p.c.row + j * p.c.col];
        if (!p.accumulate || (p.k > 0 && selects<S>(best, out))) {
          out = canonical(best);
          if (arg)
            arg[i * p.argmax.row + j * p.argmax.col] = static_cast<int32_t>(index < 0 ? -1 : index + p.argmax_offset);
        } else if (p.k > 0) {
          out = canonical(out);
        }
      }
  }
}

inline void matmul(const MatmulParams& p) {
  visit(p.semiring, p.dtype, [&]<class S, class T>() { matmul<S, T>(p); });
}

// One element of a gradient: its exact sum (in double), and what bounds the rounding of any order of additions.
struct GradientSum {
  double sum = 0;
  double magnitude = 0;
  int64_t terms = 0;
};
// By the element's offset from the operand's first one, so that broadcast batches meet in one entry.
using GradientSums = std::unordered_map<int64_t, GradientSum>;

struct Gradients {
  GradientSums a, b;
};

template <class S, class T>
Gradients matmul_backward(const BackwardParams& p) {
  Gradients sums;
  const auto value = [](const Operand& x, int64_t offset) {
    return static_cast<double>(widen(static_cast<const T*>(x.data)[offset]));
  };
  const auto add = [](GradientSum& s, double x) {
    s.sum += x;
    s.magnitude += std::abs(x);
    ++s.terms;
  };
  const bool want_a = p.grad_a.data, want_b = p.grad_b.data;
  const int64_t batches = p.batch.count();
  for (int64_t g = 0; g < batches; ++g) {
    const int64_t a0 = p.batch.offset(p.a, g), b0 = p.batch.offset(p.b, g), c0 = p.batch.offset(p.grad_c, g),
                  arg0 = p.batch.offset(p.argmax, g);
    const int64_t ga0 = want_a ? p.batch.offset(p.grad_a, g) : 0, gb0 = want_b ? p.batch.offset(p.grad_b, g) : 0;
    const auto of_a = [&](int64_t i, int64_t k) -> GradientSum& {
      return sums.a[ga0 + i * p.grad_a.row + k * p.grad_a.col];
    };
    const auto of_b = [&](int64_t k, int64_t j) -> GradientSum& {
      return sums.b[gb0 + k * p.grad_b.row + j * p.grad_b.col];
    };
    // Touch every element: those without a term are zero.
    for (int64_t k = 0; k < p.k; ++k) {
      for (int64_t i = 0; want_a && i < p.m; ++i) of_a(i, k);
      for (int64_t j = 0; want_b && j < p.n; ++j) of_b(k, j);
    }
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        const int64_t at = arg0 + i * p.argmax.row + j * p.argmax.col;
        const int64_t k = p.argmax_is_int64 ? static_cast<const int64_t*>(p.argmax.data)[at]
                                            : static_cast<const int32_t*>(p.argmax.data)[at];
        if (k < 0 || k >= p.k) continue;
        const double grad = value(p.grad_c, c0 + i * p.grad_c.row + j * p.grad_c.col);
        const double x = value(p.a, a0 + i * p.a.row + k * p.a.col), y = value(p.b, b0 + k * p.b.row + j * p.b.col);
        double to_a = grad, to_b = grad;
        bool a_has = true, b_has = true;
        if constexpr (std::is_same_v<S, MaxMul> || std::is_same_v<S, MinMul>) {
          to_a = grad * y;
          to_b = grad * x;
        } else if constexpr (std::is_same_v<S, MaxMin> || std::is_same_v<S, MinMax>) {
          // The operand that the inner operation chose; a on a tie, the first NaN otherwise.
          b_has = !std::isnan(x) && (std::isnan(y) || (S::kIsMax ? y < x : y > x));
          a_has = !b_has;
        }
        if (want_a && a_has) add(of_a(i, k), to_a);
        if (want_b && b_has) add(of_b(k, j), to_b);
      }
  }
  return sums;
}

}  // namespace tropical::reference
