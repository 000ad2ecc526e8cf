// Library calls on made-up operands, timed.
#pragma once
#include "data.cuh"
#include "params.h"

namespace tropical::cuda {

struct Options {
  Semiring semiring = Semiring::max_plus;
  Data data = Data::uniform;
  bool argmax = false;
  const char* layout = "NN";  // N row-major, T column-major; of A and B
  int64_t batch = 1;
  Filtering filtering = Filtering::never;  // tables are of the plain kernels
};

template <class T>
void make(const Operand& o, Data data, int64_t rows, int64_t cols, bool is_a, bool negated) {
  fill<T><<<4096, 256, 0, context.stream>>>(static_cast<T*>(o.data), data, rows, cols, o.row, o.col, is_a, negated);
  check(cudaGetLastError(), "fill");
}

// Seconds of one product, scratch memory and every pass included.
template <class T>
double product(int64_t m, int64_t n, int64_t k, const Options& o) {
  const bool min = o.semiring == Semiring::min_plus;
  const auto bytes = [&](int64_t elements) { return static_cast<size_t>(o.batch * elements) * sizeof(T); };
  const Memory a(bytes(m * k)), b(bytes(k * n)), c(bytes(m * n));
  const Memory argmax(o.argmax ? static_cast<size_t>(o.batch * m * n) * 4 : 16);
  MatmulParams p;
  p.semiring = o.semiring, p.dtype = TypeInfo<T>::kId;
  p.m = m, p.n = n, p.k = k;
  p.filtering = o.filtering;
  p.a = {a.data, k, 1, {m * k}};
  if (o.layout[0] == 'T') p.a.row = 1, p.a.col = m;
  p.b = {b.data, n, 1, {k * n}};
  if (o.layout[1] == 'T') p.b.row = 1, p.b.col = k;
  p.c = {c.data, n, 1, {m * n}};
  if (o.argmax) p.argmax = {argmax.data, n, 1, {m * n}};
  p.batch.ndim = o.batch > 1;
  p.batch.size[0] = o.batch;
  // The members of a batch lie one after the other, so they are rows of one large matrix.
  make<T>(p.a, o.data, o.batch * m, k, true, min);
  make<T>(p.b, o.data, o.batch * k, n, false, min);
  Status status;
  const Memory scratch(context.backend->matmul_workspace(&p, 0, &status));
  check(status);
  const double macs = static_cast<double>(m) * n * k * o.batch;
  const auto call = [&] {
    context.backend->matmul(&p, &context.queue, scratch.data, &status);
    check(status);
  };
  return seconds_of(call, macs < 2e9, macs < 2e11 ? 9 : 5);
}

struct BackwardTimes {
  double values, both, only_a, only_b;
};

// Both gradients of a square product, beside its values alone.
template <class T>
BackwardTimes backward(int64_t n, Semiring semiring) {
  const size_t bytes = static_cast<size_t>(n * n) * sizeof(T);
  const Memory a(bytes), b(bytes), c(bytes), argmax(static_cast<size_t>(n * n) * 4), grad_a(bytes), grad_b(bytes);
  MatmulParams p;
  p.semiring = semiring, p.dtype = TypeInfo<T>::kId, p.m = p.n = p.k = n;
  p.a = {a.data, n, 1, {}}, p.b = {b.data, n, 1, {}}, p.c = {c.data, n, 1, {}}, p.argmax = {argmax.data, n, 1, {}};
  make<T>(p.a, Data::normal, n, n, true, false);
  make<T>(p.b, Data::normal, n, n, false, false);
  Status status;
  const auto product = [&](const Memory& scratch) {
    context.backend->matmul(&p, &context.queue, scratch.data, &status);
    check(status);
  };
  const Memory scratch(context.backend->matmul_workspace(&p, 0, &status));
  product(scratch);
  p.argmax.data = nullptr;
  const Memory values_scratch(context.backend->matmul_workspace(&p, 0, &status));
  BackwardTimes times{};
  times.values = seconds_of([&] { product(values_scratch); }, false);

  BackwardParams q;
  q.semiring = semiring, q.dtype = p.dtype, q.m = q.n = q.k = n;
  q.a = p.a, q.b = p.b, q.grad_c = p.c, q.argmax = {argmax.data, n, 1, {}};
  q.grad_a = {grad_a.data, n, 1, {}}, q.grad_b = {grad_b.data, n, 1, {}};
  const Memory more(context.backend->backward_workspace(&q, 0, &status));
  const auto run = [&] {
    context.backend->matmul_backward(&q, &context.queue, more.data, &status);
    check(status);
  };
  times.both = seconds_of(run, false);
  q.grad_b.data = nullptr;
  times.only_a = seconds_of(run, false);
  q.grad_b.data = grad_b.data, q.grad_a.data = nullptr;
  times.only_b = seconds_of(run, false);
  return times;
}

}  // namespace tropical::cuda
