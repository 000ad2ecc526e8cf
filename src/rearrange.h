// Params in another form with the same result; both backends choose their work by these.
#pragma once
#include <initializer_list>
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

// The innermost batch axes along which B is shared become rows, where each member's rows follow those of the one
// before: one product with many rows (a layer of a network) in place of many with few. `rows` are the operands that
// have rows, `shared` those that do not; what is not wanted has no data.
inline void fold_batch(BatchShape& batch, int64_t& m, std::initializer_list<Operand*> rows,
                       std::initializer_list<const Operand*> shared) {
  for (; batch.ndim > 0; --batch.ndim) {
    const int d = batch.ndim - 1;
    for (const Operand* o : shared)
      if (o->data && o->batch[d] != 0) return;
    // The stride of a single row means nothing; a gradient that is summed over the batch keeps its one row.
    for (const Operand* o : rows)
      if (o->data && (m == 1 ? o->batch[d] == 0 : o->batch[d] != o->row * m)) return;
    if (m == 1)
      for (Operand* o : rows) o->row = o->batch[d];
    m *= batch.size[d];
  }
}
inline void fold(MatmulParams& p) { fold_batch(p.batch, p.m, {&p.a, &p.c, &p.argmax}, {&p.b}); }
inline void fold(BackwardParams& p) {
  fold_batch(p.batch, p.m, {&p.grad_c, &p.argmax, &p.a, &p.grad_a}, {&p.b, &p.grad_b});
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
