// The gradient: from params to launches.
#pragma once
#include "backward.cuh"
#include "heuristics.h"
#include "launch.cuh"
#include "product.h"
#include "rearrange.h"

namespace tropical::cuda {

inline Operand with_axes(const Operand& o, const int* axis, int count) {
  Operand r{o.data, o.row, o.col, {}};
  for (int d = 0; d < count; ++d) r.batch[d] = o.batch[axis[d]];
  return r;
}

// The gradient of B is that of A in Ct = Bt At.
inline SideArgs side_args(const BackwardParams& p, bool own_is_a) {
  const Operand& own = own_is_a ? p.a : p.b;
  const Operand& opposite = own_is_a ? p.b : p.a;
  const Operand& grad = own_is_a ? p.grad_a : p.grad_b;
  const auto view = [&](const Operand& o, bool first_axis_is_line) {
    return SideArgs::View{o.data, first_axis_is_line ? o.row : o.col, first_axis_is_line ? o.col : o.row};
  };
  SideArgs s{};
  s.own = view(own, own_is_a);
  s.opposite = view(opposite, !own_is_a);  // its `line` is the axis summed away, its `other` is k
  s.grad_c = view(p.grad_c, own_is_a);
  s.argmax = view(p.argmax, own_is_a);
  s.grad = grad.data;
  s.grad_line = own_is_a ? grad.row : grad.col;
  s.grad_k = own_is_a ? grad.col : grad.row;
  s.lines = own_is_a ? p.m : p.n;
  s.across = own_is_a ? p.n : p.m;
  s.k = p.k;
  s.argmax_is_int64 = p.argmax_is_int64;
  const GradientAxes axes = split_axes(p.batch, grad);
  Operand kept[5], summed[4];
  const Operand* all[] = {&own, &opposite, &p.grad_c, &p.argmax, &grad};
  for (int o = 0; o < 5; ++o) kept[o] = with_axes(*all[o], axes.kept_axis, axes.kept.ndim);
  for (int o = 0; o < 4; ++o) summed[o] = with_axes(*all[o], axes.summed_axis, axes.summed.ndim);
  s.kept = collapse<5>(axes.kept, {&kept[0], &kept[1], &kept[2], &kept[3], &kept[4]});
  s.summed = collapse<4>(axes.summed, {&summed[0], &summed[1], &summed[2], &summed[3]});
  return s;
}

template <class S, class In, bool kOwnIsA>
void gradient_side(const BackwardParams& p, Call& call) {
  using W = wide_t<In>;
  SideArgs s = side_args(p, kOwnIsA);
  if (s.kept.count == 0 || s.lines == 0 || s.k == 0) return;
  constexpr int kItem = sizeof(W);
  const auto bytes = [](int warps, int64_t bins_stride) { return gradient_bytes(warps, bins_stride, kItem); };
  const GradientPlan plan = plan_gradient(s.kept.count, s.lines, (s.across + 31) / 32 * s.summed.count, s.k, kItem,
                                          bytes, *call.target.facts);
  s.bins = plan.bins;
  s.bins_stride = plan.bins_stride;
  s.splits = plan.splits;
  if (s.splits > 1) s.partial = call.scratch.template take<W>(s.splits * s.kept.count * s.lines * s.k);
  const int64_t blocks = s.kept.count * ceil_div(s.lines, plan.warps) * ceil_div(s.k, s.bins) * s.splits;
  launch<&gradient_sums<gradient_rule_v<S>, In, kOwnIsA>>(call.target, blocks, plan.warps * 32,
                                                          static_cast<size_t>(bytes(plan.warps, s.bins_stride)), s);
  if (s.splits > 1) launch<&add_splits<In>>(call.target, ceil_div(s.kept.count * s.lines * s.k, 256), 256, 0, s);
}

template <class S, class In>
void gradient(const BackwardParams& params, Call& call) {
  if constexpr (differentiable_v<S, In>) {
    if (params.grad_a.data) gradient_side<S, In, true>(params, call);
    if (params.grad_b.data) gradient_side<S, In, false>(params, call);
  }
}

}  // namespace tropical::cuda
