// The oracle of the C++ tests: three plain loops over the scalar operations of semiring.h.
#pragma once
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
          if (arg) arg[i * p.argmax.row + j * p.argmax.col] =
              static_cast<int32_t>(index < 0 ? -1 : index + p.argmax_offset);
        } else if (p.k > 0) {
          out = canonical(out);
        }
      }
  }
}

inline void matmul(const MatmulParams& p) {
  visit(p.semiring, p.dtype, [&]<class S, class T>() { matmul<S, T>(p); });
}

}  // namespace tropical::reference
