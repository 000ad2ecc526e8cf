#include "validate.h"

#include <algorithm>
#include <limits>
#include <string>

#include "checks.h"
#include "counting.h"
#include "filter.h"
#include "tensor.h"
#include "visit.h"

namespace tropical {
namespace {

int batch_dims(const DLTensor& x) { return std::max(x.ndim - 2, 0); }

struct ProductShape {
  int64_t m, n, k;
  BatchShape batch;
  std::vector<int64_t> full;
};

ProductShape product_shape(const DLTensor& a, const DLTensor& b) {
  check_forms({{&a, "a"}, {&b, "b"}});
  check_operand(a, "a", a);
  check_operand(b, "b", a);
  const auto both = [&] { return "a has shape " + shape_text(a) + " and b has shape " + shape_text(b); };
  ProductShape s{};
  s.m = a.ndim == 1 ? 1 : a.shape[a.ndim - 2];
  s.k = a.shape[a.ndim - 1];
  const int64_t kb = b.ndim == 1 ? b.shape[0] : b.shape[b.ndim - 2];
  s.n = b.ndim == 1 ? 1 : b.shape[b.ndim - 1];
  if (s.k != kb)
    bad_value(both() + ": the last axis of a (" + std::to_string(s.k) + ") must equal " +
              (b.ndim == 1 ? "the axis" : "the last axis but one") + " of b (" + std::to_string(kb) + ")");
  const int na = batch_dims(a), nb = batch_dims(b);
  s.batch.ndim = std::max(na, nb);
  for (int d = 0; d < s.batch.ndim; ++d) {
    const int da = d - (s.batch.ndim - na), db = d - (s.batch.ndim - nb);
    const int64_t xa = da < 0 ? 1 : a.shape[da], xb = db < 0 ? 1 : b.shape[db];
    if (xa != xb && xa != 1 && xb != 1) bad_value(both() + ": their leading axes do not broadcast");
    s.batch.size[d] = xa == 1 ? xb : xa;
  }
  s.full.assign(s.batch.size, s.batch.size + s.batch.ndim);
  if (a.ndim > 1) s.full.push_back(s.m);
  if (b.ndim > 1) s.full.push_back(s.n);
  int64_t bytes = 8;
  for (const int64_t x : s.full)
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(x, 1), &bytes))
      bad_value(both() + ": their product has more elements than memory can hold");
  return s;
}

// Strides of x as an operand: its batch axes aligned to the right end of `shape`, 0 where it is broadcast. That of an
// axis of size 1 means nothing and may be any number; it becomes 1, or 0 for the row of a vector.
Operand operand(const DLTensor& x, const BatchShape& shape, bool has_row, bool has_col) {
  Operand o;
  o.data = data_of(x);
  if (is_empty(x)) return o;  // its strides mean nothing
  int axis = x.ndim;
  const auto step = [&](int64_t of_one) {
    --axis;
    return x.shape[axis] == 1 ? of_one : stride_of(x, axis);
  };
  if (has_col) o.col = step(1);
  if (has_row) o.row = step(0);
  for (int d = shape.ndim - 1; d >= 0 && axis > 0; --d) {
    --axis;
    o.batch[d] = x.shape[axis] == 1 ? 0 : stride_of(x, axis);
  }
  return o;
}

// Drops batch axes of size 1 and merges neighbours that all operands step through evenly.
template <size_t Count>
void collapse(BatchShape& shape, Operand* const (&operands)[Count]) {
  int kept = 0;
  for (int d = 0; d < shape.ndim; ++d) {
    if (shape.size[d] == 1) continue;
    const bool merges = kept > 0 && std::all_of(std::begin(operands), std::end(operands), [&](const Operand* o) {
                          return o->batch[kept - 1] == o->batch[d] * shape.size[d];
                        });
    if (merges) {
      shape.size[kept - 1] *= shape.size[d];
    } else {
      shape.size[kept++] = shape.size[d];
    }
    for (Operand* o : operands) o->batch[kept - 1] = o->batch[d];
  }
  shape.ndim = kept;
}

void check_semiring(Semiring semiring, DType dtype) {
  if (!is_semiring(static_cast<int32_t>(semiring)))
    bad_value("semiring is " + std::to_string(static_cast<int>(semiring)) + ", expected one of the enumeration");
  bool ok = false;
  visit(semiring, dtype, [&]<class S, class T>() { ok = true; });
  if (!ok)
    bad_type(std::string("a has dtype ") + dtype_name(dtype) + ", which the semiring " + semiring_name(semiring) +
             " does not have; " +
             (semiring == Semiring::or_and ? "it is defined on bool only" : "bool is for or_and only"));
}

// Of both operands; the semiring has it.
DType operand_dtype(Semiring semiring, const DLTensor& a, const DLTensor& b) {
  const DType dtype = dtype_of(a.dtype, "a");
  check_dtype(b, "b", dtype, " like a");
  check_semiring(semiring, dtype);
  return dtype;
}

constexpr int64_t kMaxIndex = std::numeric_limits<int32_t>::max();

// Of a product over an axis of k, with or without an argmax.
void check_options(const MatmulOptions& options, bool argmax, int64_t k) {
  const int64_t offset = options.argmax_offset;
  if (offset < 0) bad_value("argmax_offset is " + std::to_string(offset) + ", expected at least 0");
  if (argmax && k > kMaxIndex - std::min(offset, kMaxIndex))
    bad_value("argmax_offset (" + std::to_string(offset) + ") plus the summed axis of a (" + std::to_string(k) +
              ") exceeds " + std::to_string(kMaxIndex) +
              ", the largest index that int32 can hold; split the axis and use accumulate with argmax_offset");
  if (!argmax && offset != 0) bad_value("argmax_offset is " + std::to_string(offset) + " but no argmax was asked for");
  check_threads(options.threads);
}

}  // namespace

std::vector<int64_t> matmul_shape(const DLTensor& a, const DLTensor& b) { return product_shape(a, b).full; }

std::vector<int64_t> matmul_shape(Semiring semiring, const DLTensor& a, const DLTensor& b) {
  operand_dtype(semiring, a, b);
  return product_shape(a, b).full;
}

std::vector<int64_t> matmul_shape(Semiring semiring, const DLTensor& a, const DLTensor& b, bool argmax,
                                  const MatmulOptions& options) {
  operand_dtype(semiring, a, b);
  const ProductShape s = product_shape(a, b);
  check_options(options, argmax, s.k);
  return s.full;
}

MatmulParams validate_matmul(Semiring semiring, const DLTensor& a, const DLTensor& b, const DLTensor& c,
                             const DLTensor* argmax, const MatmulOptions& options) {
  check_forms({{&c, "out"}, {argmax, "argmax"}});
  MatmulParams p;
  p.filtering = filtering();
  p.semiring = semiring;
  p.dtype = operand_dtype(semiring, a, b);
  const ProductShape s = product_shape(a, b);
  p.m = s.m, p.n = s.n, p.k = s.k, p.batch = s.batch;

  check_dtype(c, "out", p.dtype, " like a");
  check_shape(c, "out", s.full);
  check_tensor(c, "out", a);
  check_written(c, "out");
  check_disjoint(c, "out", a, "a");
  check_disjoint(c, "out", b, "b");
  const bool row = a.ndim > 1, col = b.ndim > 1;
  p.a = operand(a, p.batch, row, true);
  p.b = operand(b, p.batch, true, col);
  p.c = operand(c, p.batch, row, col);
  if (argmax) {
    check_dtype(*argmax, "argmax", DType::i32, "");
    check_shape(*argmax, "argmax", s.full);
    check_tensor(*argmax, "argmax", a);
    check_written(*argmax, "argmax");
    check_disjoint(*argmax, "argmax", a, "a");
    check_disjoint(*argmax, "argmax", b, "b");
    check_disjoint(*argmax, "argmax", c, "out");
    p.argmax = operand(*argmax, p.batch, row, col);
  }
  check_options(options, argmax != nullptr, p.k);
  p.accumulate = options.accumulate;
  p.argmax_offset = options.argmax_offset;
  p.threads = options.threads;
  p.cancel.flag = options.cancel;
  collapse(p.batch, {&p.a, &p.b, &p.c, &p.argmax});
  return p;
}

CountParams validate_count(Semiring semiring, const DLTensor& a, const DLTensor* a_counts, const DLTensor& b,
                           const DLTensor* b_counts, const DLTensor& c, const DLTensor& c_counts,
                           const MatmulOptions& options) {
  check_forms({{a_counts, "a_counts"}, {b_counts, "b_counts"}, {&c, "out"}, {&c_counts, "out_counts"}});
  if (options.accumulate) bad_value("accumulate is true, expected false: counts are not added to what out holds");
  if (options.argmax_offset != 0)
    bad_value("argmax_offset is " + std::to_string(options.argmax_offset) + ", expected 0: counts have no argmax");
  CountParams p;
  p.semiring = semiring;
  if (semiring != Semiring::max_plus && semiring != Semiring::min_plus)
    bad_value(std::string("semiring is ") + semiring_name(semiring) +
              ", expected max_plus or min_plus: others have no counts");
  p.dtype = operand_dtype(semiring, a, b);
  bool counts = false;
  visit_dtype(p.dtype, [&]<class T>() { counts = counts_v<T>; });
  if (!counts)
    bad_type(std::string("a has dtype ") + dtype_name(p.dtype) +
             "; values that are counted are float32, float64, int32 or int64");
  const ProductShape s = product_shape(a, b);
  p.m = s.m, p.n = s.n, p.k = s.k, p.batch = s.batch;
  const DType count = dtype_of(c_counts.dtype, "out_counts");
  if (count != DType::f64 && count != DType::i64)
    bad_type(std::string("out_counts has dtype ") + dtype_name(count) + ", expected float64 or int64");
  p.counts_are_int64 = count == DType::i64;

  const bool row = a.ndim > 1, col = b.ndim > 1;
  const auto counted = [&](const DLTensor* x, const char* name, const DLTensor& of, bool has_row, bool has_col) {
    if (!x) return Operand{};
    check_dtype(*x, name, count, " like the counts of the result");
    check_shape(*x, name, {of.shape, of.shape + of.ndim});
    check_tensor(*x, name, a);
    return operand(*x, p.batch, has_row, has_col);
  };
  p.a = operand(a, p.batch, row, true);
  p.b = operand(b, p.batch, true, col);
  p.a_count = counted(a_counts, "a_counts", a, row, true);
  p.b_count = counted(b_counts, "b_counts", b, true, col);
  check_dtype(c, "out", p.dtype, " like a");
  check_shape(c, "out", s.full);
  check_tensor(c, "out", a);
  check_shape(c_counts, "out_counts", s.full);
  check_tensor(c_counts, "out_counts", a);
  p.c = operand(c, p.batch, row, col);
  p.c_count = operand(c_counts, p.batch, row, col);
  const DLTensor* read[] = {&a, &b, a_counts, b_counts};
  const char* names[] = {"a", "b", "a_counts", "b_counts"};
  check_outputs({&c, &c_counts}, {"out", "out_counts"}, read, names);
  check_threads(options.threads);
  p.threads = options.threads;
  p.cancel.flag = options.cancel;
  collapse(p.batch, {&p.a, &p.b, &p.c, &p.a_count, &p.b_count, &p.c_count});
  return p;
}

BackwardParams validate_backward(Semiring semiring, const DLTensor& grad_c, const DLTensor& argmax, const DLTensor& a,
                                 const DLTensor& b, const DLTensor* grad_a, const DLTensor* grad_b, int threads) {
  check_forms({{&grad_c, "grad_c"}, {&argmax, "argmax"}, {grad_a, "grad_a"}, {grad_b, "grad_b"}});
  BackwardParams p;
  p.semiring = semiring;
  p.dtype = operand_dtype(semiring, a, b);
  bool differentiable = false;
  visit(semiring, p.dtype, [&]<class S, class T>() { differentiable = differentiable_v<S, T>; });
  if (!differentiable)
    bad_type(std::string("a has dtype ") + dtype_name(p.dtype) +
             "; gradients exist for float16, bfloat16, float32 and float64");
  const ProductShape s = product_shape(a, b);
  p.m = s.m, p.n = s.n, p.k = s.k, p.batch = s.batch, p.threads = threads;

  check_dtype(grad_c, "grad_c", p.dtype, " like a");
  check_shape(grad_c, "grad_c", s.full);
  check_tensor(grad_c, "grad_c", a);
  p.argmax_is_int64 = is_int64(argmax, "argmax");
  check_shape(argmax, "argmax", s.full);
  check_tensor(argmax, "argmax", a);
  check_threads(threads);

  const bool row = a.ndim > 1, col = b.ndim > 1;
  p.grad_c = operand(grad_c, p.batch, row, col);
  p.argmax = operand(argmax, p.batch, row, col);
  p.a = operand(a, p.batch, row, true);
  p.b = operand(b, p.batch, true, col);
  const auto gradient = [&](const DLTensor* g, const char* name, const DLTensor& of, const char* like, bool has_row,
                            bool has_col) -> Operand {
    if (!g) return {};
    check_dtype(*g, name, p.dtype, like);
    check_shape(*g, name, {of.shape, of.shape + of.ndim});
    check_tensor(*g, name, a);
    check_written(*g, name);
    check_disjoint(*g, name, grad_c, "grad_c");
    check_disjoint(*g, name, argmax, "argmax");
    check_disjoint(*g, name, a, "a");
    check_disjoint(*g, name, b, "b");
    return operand(*g, p.batch, has_row, has_col);
  };
  p.grad_a = gradient(grad_a, "grad_a", a, " like a", row, true);
  p.grad_b = gradient(grad_b, "grad_b", b, " like b", true, col);
  if (grad_a && grad_b) check_disjoint(*grad_a, "grad_a", *grad_b, "grad_b");
  collapse(p.batch, {&p.grad_c, &p.argmax, &p.a, &p.b, &p.grad_a, &p.grad_b});
  return p;
}

namespace {

// A matrix of a graph's; `written` ones have an element of their own for each entry.
Operand graph_matrix(const DLTensor& x, const char* name, const std::vector<int64_t>& shape, const DLTensor& like,
                     bool written) {
  check_shape(x, name, shape);
  check_tensor(x, name, like);
  if (written) check_written(x, name);
  return operand(x, {}, true, true);
}

// What the first matrix of a call settles: dtype and nodes.
GraphParams graph_params(Semiring semiring, const DLTensor& x, const char* name) {
  GraphParams p;
  p.semiring = semiring;
  p.dtype = dtype_of(x.dtype, name);
  check_semiring(semiring, p.dtype);
  if (x.ndim != 2 || x.shape[0] != x.shape[1])
    bad_value(std::string(name) + " has shape " + shape_text(x) + ", expected a square matrix");
  p.m = p.n = x.shape[0];
  // Nodes and twice as many indices fit in an int32.
  if (p.n > kMaxIndex / 2)
    bad_value(std::string(name) + " has " + std::to_string(p.n) + " rows, at most " + std::to_string(kMaxIndex / 2) +
              " are supported");
  return p;
}

Operand predecessors(const DLTensor* pred, const std::vector<int64_t>& shape, const DLTensor& like) {
  if (!pred) return {};
  check_dtype(*pred, "pred", DType::i32, "");
  return graph_matrix(*pred, "pred", shape, like, true);
}

}  // namespace

GraphParams validate_graph(Semiring semiring, const DLTensor& source, const DLTensor* to, const DLTensor* pred) {
  check_forms({{&source, "source"}, {to, "to"}, {pred, "pred"}});
  GraphParams p = graph_params(semiring, source, "source");
  const std::vector<int64_t> shape{p.n, p.n};
  p.from = graph_matrix(source, "source", shape, source, false);
  if (to) {
    check_dtype(*to, "to", p.dtype, " like source");
    p.to = graph_matrix(*to, "to", shape, source, true);
    const bool same = p.to.data == p.from.data && p.to.row == p.from.row && p.to.col == p.from.col;
    if (!same) check_disjoint(*to, "to", source, "source");
  }
  p.pred = predecessors(pred, shape, source);
  if (pred) check_disjoint(*pred, "pred", source, "source");
  if (pred && to) check_disjoint(*pred, "pred", *to, "to");
  return p;
}

GraphParams validate_closure(Semiring semiring, const DLTensor& d, const DLTensor* pred) {
  check_forms({{&d, "d"}, {pred, "pred"}});
  GraphParams p = graph_params(semiring, d, "d");
  const std::vector<int64_t> shape{p.n, p.n};
  p.to = graph_matrix(d, "d", shape, d, true);
  if (p.n > 1 && p.to.col != 1)
    bad_value("d has stride " + std::to_string(p.to.col) + " along its rows, expected contiguous rows");
  p.pred = predecessors(pred, shape, d);
  if (pred) check_disjoint(*pred, "pred", d, "d");
  return p;
}

GraphParams validate_paths(Semiring semiring, const std::vector<int64_t>& sources, const DLTensor& d,
                           const DLTensor* pred) {
  check_forms({{&d, "d"}, {pred, "pred"}});
  GraphParams p;
  p.semiring = semiring;
  p.dtype = dtype_of(d.dtype, "d");
  check_semiring(semiring, p.dtype);
  if (d.ndim != 2 || d.shape[0] != static_cast<int64_t>(sources.size()))
    bad_value("d has shape " + shape_text(d) + ", expected (" + std::to_string(sources.size()) +
              ", any): a row for each source");
  p.m = d.shape[0], p.n = d.shape[1];
  for (const int64_t source : sources)
    if (source < -1 || source >= p.n)
      bad_value("sources holds " + std::to_string(source) + ", expected nodes from 0 to " + std::to_string(p.n - 1));
  p.to = graph_matrix(d, "d", {p.m, p.n}, d, true);
  p.pred = predecessors(pred, {p.m, p.n}, d);
  if (pred) check_disjoint(*pred, "pred", d, "d");
  return p;
}

GraphParams validate_relax(Semiring semiring, const DLTensor& w, const DLTensor& d, const DLTensor* pred) {
  check_forms({{&w, "w"}, {&d, "d"}, {pred, "pred"}});
  GraphParams p = graph_params(semiring, w, "w");
  p.from = graph_matrix(w, "w", {p.n, p.n}, w, false);
  check_dtype(d, "d", p.dtype, " like w");
  if (d.ndim != 2 || d.shape[1] != p.n)
    bad_value("d has shape " + shape_text(d) + ", expected (any, " + std::to_string(p.n) + ")");
  p.m = d.shape[0];
  p.to = graph_matrix(d, "d", {p.m, p.n}, w, true);
  check_disjoint(d, "d", w, "w");
  p.pred = predecessors(pred, {p.m, p.n}, w);
  if (pred) {
    check_disjoint(*pred, "pred", w, "w");
    check_disjoint(*pred, "pred", d, "d");
  }
  return p;
}

}  // namespace tropical
