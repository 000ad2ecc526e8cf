// Params in another form with the same result; both backends choose their work by these.
#pragma once
#include <utility>

#include "params.h"

namespace tropical {

// C = A B is Ct = Bt At; taken where it makes the rows of C contiguous. All semirings here commute.
inline MatmulParams oriented(const MatmulParams& p) {
  const bool by_columns = p.c.row == 1 && p.c.col != 1 && p.m > 1 && p.n > 1;
  if (!by_columns) return p;
  MatmulParams t = p;
  std::swap(t.m, t.n);
  t.a = p.b;
  t.b = p.a;
  for (Operand* o : {&t.a, &t.b, &t.c, &t.argmax}) std::swap(o->row, o->col);
  return t;
}

// The batch axes that a gradient keeps, and those summed over because its operand was broadcast there.
struct GradientAxes {
  BatchShape kept, summed;
  int kept_axis[kMaxBatchDims], summed_axis[kMaxBatchDims];
};
inline GradientAxes split_axes(const BatchShape& batch, const Operand& grad) {
  GradientAxes x{};
  for (int d = 0; d < batch.ndim; ++d) {
    const bool keeps = grad.batch[d] != 0 || batch.size[d] == 1;
    BatchShape& to = keeps ? x.kept : x.summed;
    (keeps ? x.kept_axis : x.summed_axis)[to.ndim] = d;
    to.size[to.ndim++] = batch.size[d];
  }
  return x;
}

}  // namespace tropical
