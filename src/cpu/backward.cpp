// The gradient through the selected k: scatter sums in a fixed order, each target row or column owned by one thread.
#include <algorithm>

#include "cpu/backend.h"
#include "lowering.h"
#include "parallel.h"
#include "rearrange.h"
#include "tropical_gemm/error.h"
#include "visit.h"
#include "workspace.h"

namespace tropical::cpu {
namespace {

constexpr int64_t kBlockBytes = int64_t{256} << 10;  // sums of one task stay in L2
constexpr double kThreadWork = 1 << 15;

// The part of the gradient with respect to one operand. `own` is that operand (A, or Bt), `other` the other one, the
// outputs are seen as (line, across): line runs along own's kept axis, across along the axis that is summed away.
struct Side {
  Operand own, other, grad, grad_c, argmax;
  int64_t lines, across;
};

Side side_a(const BackwardParams& p) { return {p.a, p.b, p.grad_a, p.grad_c, p.argmax, p.m, p.n}; }

// The gradient of B is that of A in Ct = Bt At.
Side side_b(const BackwardParams& p) {
  Side s{p.b, p.a, p.grad_b, p.grad_c, p.argmax, p.n, p.m};
  for (Operand* o : {&s.own, &s.other, &s.grad, &s.grad_c, &s.argmax}) std::swap(o->row, o->col);
  return s;
}

// d(own * other) / d(own), times g.
template <class S, bool kOwnIsA, class W>
W share(W g, [[maybe_unused]] W own, [[maybe_unused]] W other) {
  if constexpr (is_plus_v<S>) {
    return g;
  } else if constexpr (is_times_v<S>) {
    return g * other;
  } else {
    // The operand that the inner min or max chose; A on a tie. A NaN operand is the chosen one, A first.
    const W a = kOwnIsA ? own : other, b = kOwnIsA ? other : own;
    const bool chose_a = a != a || (b == b && (std::is_same_v<S, MaxMin> ? a <= b : a >= b));
    return chose_a == kOwnIsA ? g : W{0};
  }
}

int64_t offset(const Operand& o, const BatchShape& shape, const int* axis, int64_t index) {
  int64_t at = 0;
  for (int d = shape.ndim - 1; d >= 0; --d) {
    at += index % shape.size[d] * o.batch[axis[d]];
    index /= shape.size[d];
  }
  return at;
}

template <class S, class T, class Index, bool kOwnIsA>
void backward_side(const Side& s, const BackwardParams& p) {
  using W = wide_t<T>;
  const GradientAxes axes = split_axes(p.batch, s.grad);
  const int64_t kept = axes.kept.count(), summed = axes.summed.count();
  const int64_t k_size = p.k;
  if (kept == 0 || s.lines == 0 || k_size == 0) return;
  // Sums are kept as [k][line of the block] for B, where neighbouring lines are neighbours in memory, and so for A.
  const int64_t block = std::clamp<int64_t>(kBlockBytes / (k_size * static_cast<int64_t>(sizeof(W))), 1,
                                            kOwnIsA ? 1 : std::min<int64_t>(s.lines, 64));
  const int64_t blocks = (s.lines + block - 1) / block;
  const double work = static_cast<double>(kept) * static_cast<double>(summed) * static_cast<double>(s.lines) *
                      static_cast<double>(s.across);
  const int threads = work < kThreadWork ? 1 : thread_count(p.threads);
  parallel_for(kept * blocks, threads, [&](int64_t task, int) {
    const int64_t keep = task / blocks, line0 = task % blocks * block;
    const int64_t lines = std::min(block, s.lines - line0);
    WorkspaceScope scope(Workspace::local(), static_cast<size_t>(k_size * lines) * sizeof(W) + Workspace::kAlignment);
    W* sums = scope.take<W>(static_cast<size_t>(k_size * lines));
    std::fill(sums, sums + k_size * lines, W{0});
    const auto at = [&](const Operand& o, int64_t sum) {
      return offset(o, axes.kept, axes.kept_axis, keep) + offset(o, axes.summed, axes.summed_axis, sum);
    };
    for (int64_t sum = 0; sum < summed; ++sum) {
      if (p.cancel.raised()) throw Error(ErrorCode::cancelled, "the gradient was cancelled by its caller");
      const T* grad_c = static_cast<const T*>(s.grad_c.data) + at(s.grad_c, sum) + line0 * s.grad_c.row;
      const Index* argmax = static_cast<const Index*>(s.argmax.data) + at(s.argmax, sum) + line0 * s.argmax.row;
      const T* own = static_cast<const T*>(s.own.data) + at(s.own, sum) + line0 * s.own.row;
      const T* other = static_cast<const T*>(s.other.data) + at(s.other, sum);
      for (int64_t x = 0; x < s.across; ++x)
        for (int64_t line = 0; line < lines; ++line) {
          const Index k = argmax[line * s.argmax.row + x * s.argmax.col];
          if (k < 0 || k >= k_size) continue;
          const W g = widen(grad_c[line * s.grad_c.row + x * s.grad_c.col]);
          W mine{}, theirs{};
          if constexpr (!is_plus_v<S>) {
            mine = widen(own[line * s.own.row + k * s.own.col]);
            theirs = widen(other[k * s.other.row + x * s.other.col]);
          }
          sums[k * lines + line] += share<S, kOwnIsA>(g, mine, theirs);
        }
    }
    T* grad = static_cast<T*>(s.grad.data) + offset(s.grad, axes.kept, axes.kept_axis, keep) + line0 * s.grad.row;
    for (int64_t k = 0; k < k_size; ++k)
      for (int64_t line = 0; line < lines; ++line)
        grad[line * s.grad.row + k * s.grad.col] = canonical(narrow<T>(sums[k * lines + line]));
  });
}

}  // namespace

void matmul_backward(const BackwardParams& params) {
  visit(params.semiring, params.dtype, [&]<class S, class T>() {
    if constexpr (differentiable_v<S, T>) {
      const auto sides = [&]<class Index>() {
        if (params.grad_a.data) backward_side<S, T, Index, true>(side_a(params), params);
        if (params.grad_b.data) backward_side<S, T, Index, false>(side_b(params), params);
      };
      if (params.argmax_is_int64)
        sides.template operator()<int64_t>();
      else
        sides.template operator()<int32_t>();
    }
  });
}

}  // namespace tropical::cpu
