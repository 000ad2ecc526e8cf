// Steps of Floyd-Warshall on some columns of a panel of rows. Per-target include guard, after Highway's convention.
#if defined(TROPICAL_CPU_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TROPICAL_CPU_PANEL_INL_H_
#undef TROPICAL_CPU_PANEL_INL_H_
#else
#define TROPICAL_CPU_PANEL_INL_H_
#endif

#include "cpu/ops-inl.h"
#include "cpu/panel_call.h"
#include "edge_rule.h"
#include "visit.h"

HWY_BEFORE_NAMESPACE();
namespace tropical::cpu::HWY_NAMESPACE {

// row <- row add m through, with the indices of `through` where that is strictly better.
template <class S, class T, bool kTracks>
void PanelRow(T m, const T* through, T* row, const PanelIndex<T>* pred_through, PanelIndex<T>* pred, int64_t cols) {
  if constexpr (kPanelVectors<T>) {
    using O = Ops<S, T, !std::is_floating_point_v<T>>;
    const hn::ScalableTag<T> d;
    const hn::RebindToSigned<decltype(d)> di;
    const auto to_k = hn::Set(d, m);
    for (int64_t j = 0; j < cols; j += static_cast<int64_t>(hn::Lanes(d))) {
      const auto x = O::Mul(d, to_k, hn::Load(d, through + j)), old = hn::Load(d, row + j);
      const auto better = O::Better(d, x, old);
      hn::Store(hn::IfThenElse(better, x, old), d, row + j);
      if constexpr (kTracks)
        hn::Store(hn::IfThenElse(hn::RebindMask(di, better), hn::Load(di, pred_through + j), hn::Load(di, pred + j)),
                  di, pred + j);
    }
  } else {
    for (int64_t j = 0; j < cols; ++j) {
      const T x = S::mul(m, through[j]);
      if (!S::better(x, row[j])) continue;
      row[j] = x;
      if constexpr (kTracks) pred[j] = pred_through[j];
    }
  }
}

// Everything about one block of columns: into the copy, all steps, back.
template <class S, class T, bool kTracks>
void RunPanel(const PanelCall& c) {
  using Index = PanelIndex<T>;
  T* d = static_cast<T*>(c.d);
  Index* pred = static_cast<Index*>(c.pred);
  T* multipliers = static_cast<T*>(c.multipliers);
  T* source = static_cast<T*>(c.source);
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.ld; ++j) {
      const bool real = j < c.cols;
      d[i * c.ld + j] = real ? read_element(source + i * c.source_row + j * c.source_col) : S::template zero<T>();
      if constexpr (kTracks)
        pred[i * c.ld + j] =
            real ? static_cast<Index>(c.source_pred[i * c.source_pred_row + j * c.source_pred_col]) : Index{0};
    }
  const T zero = S::template zero<T>();
  for (int64_t k = 0; k < c.rows; ++k) {
    if (c.report) {
      // The pivot's own columns. A closed walk better than `one` ends it: what follows would grow without bounds.
      const T before = d[k * c.ld + k];
      if (!settles<S>(d[k * c.ld + k], c.tolerance)) {
        c.report->diverged = std::min(c.report->diverged, c.first + k);
        return;
      }
      if (kTracks && S::better(before, d[k * c.ld + k])) pred[k * c.ld + k] = kNoPredecessor;
    }
    for (int64_t i = 0; i < c.rows; ++i) {
      T& m = multipliers[i * c.multipliers_row + k];
      if (c.report) m = d[i * c.ld + k];
      if (i == k || EdgeRule<S, T>::same(m, zero)) continue;
      PanelRow<S, T, kTracks>(m, d + k * c.ld, d + i * c.ld, pred + (kTracks ? k * c.ld : 0),
                              pred + (kTracks ? i * c.ld : 0), c.ld);
    }
  }
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.cols; ++j) {
      source[i * c.source_row + j * c.source_col] = canonical(d[i * c.ld + j]);
      if constexpr (kTracks)
        c.source_pred[i * c.source_pred_row + j * c.source_pred_col] = static_cast<int32_t>(pred[i * c.ld + j]);
    }
}

// Marks from `limit` on become the index that the row of their pivot has in the same column. The rows of a pivot
// are few, so that offsets within them fit in an int32.
void ResolveRow(int32_t* pred, const int32_t* from, int64_t from_row, int32_t limit, int64_t n) {
  const hn::ScalableTag<int32_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto first = hn::Set(d, limit), step = hn::Set(d, static_cast<int32_t>(from_row));
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const auto x = hn::LoadU(d, pred + j);
    const auto old = hn::Lt(x, first);
    if (hn::AllTrue(d, old)) continue;
    const auto k = hn::IfThenZeroElse(old, hn::Sub(x, first));
    const auto at = hn::Add(hn::Mul(k, step), hn::Iota(d, 0));
    hn::StoreU(hn::IfThenElse(old, x, hn::GatherIndex(d, from + j, at)), d, pred + j);
  }
  for (; j < n; ++j)
    if (pred[j] >= limit) pred[j] = from[(pred[j] - limit) * from_row + j];
}

PanelSteps FindPanelSteps(Semiring semiring, DType dtype, bool tracks) {
  PanelSteps found = nullptr;
  visit(semiring, dtype, [&]<class S, class T>() { found = tracks ? &RunPanel<S, T, true> : &RunPanel<S, T, false>; });
  return found;
}

}  // namespace tropical::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
