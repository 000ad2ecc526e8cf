#include "cpu/scan.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "visit.h"

namespace tropical::cpu {

bool makes_nan(Semiring semiring, const Facts& a, const Facts& b) {
  bool nan = false;
  visit_semiring(semiring, [&]<class S>() {
    if constexpr (is_plus_v<S>)
      nan = (a.plus_infinity && b.minus_infinity) || (a.minus_infinity && b.plus_infinity);
    else if constexpr (is_times_v<S>)
      nan = ((a.plus_infinity || a.minus_infinity) && b.zero) || ((b.plus_infinity || b.minus_infinity) && a.zero);
  });
  return nan;
}

namespace {

uint64_t magnitude(const Facts& f) {
  const auto abs = [](int64_t x) { return x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x); };
  return std::max(abs(f.low), abs(f.high));
}

constexpr int32_t kNone = std::numeric_limits<int32_t>::max();

// As an index of argmax, which is below kNone; without argmax K may be larger, but then only "a NaN" counts.
int32_t position(int64_t k) { return static_cast<int32_t>(std::min<int64_t>(k, kNone - 1)); }

// For each of `lines` lines of `length` elements, the lowest position of a NaN; kNone without one. Walked along the
// smaller stride.

template <class In>
void first_nans(const In* x, int64_t lines, int64_t length, int64_t line_step, int64_t step, int32_t* first) {
  std::fill(first, first + lines, kNone);
  if (std::abs(step) <= std::abs(line_step)) {
    for (int64_t i = 0; i < lines; ++i)
      for (int64_t k = 0; k < length && first[i] == kNone; ++k)
        if (is_nan(x[i * line_step + k * step])) first[i] = position(k);
    return;
  }
  // All lines at once, until each has its NaN; the inner loop has no branch.
  for (int64_t k = 0; k < length; ++k) {
    const In* row = x + k * step;
    const int32_t at = position(k);
    int32_t last = 0;
    if (line_step == 1)
      for (int64_t i = 0; i < lines; ++i) {
        first[i] = std::min(first[i], is_nan(row[i]) ? at : kNone);
        last = std::max(last, first[i]);
      }
    else
      for (int64_t i = 0; i < lines; ++i) {
        if (first[i] == kNone && is_nan(row[i * line_step])) first[i] = at;
        last = std::max(last, first[i]);
      }
    if (last != kNone) return;
  }
}

template <class In>
void spread(const Product& p) {
  Workspace& workspace = Workspace::local();
  const WorkspaceScope scope(workspace, static_cast<size_t>(p.m + p.n) * sizeof(int32_t) + 2 * Workspace::kAlignment);
  int32_t* in_row = workspace.take<int32_t>(static_cast<size_t>(p.m));
  int32_t* in_col = workspace.take<int32_t>(static_cast<size_t>(p.n));
  first_nans(reinterpret_cast<const In*>(p.a), p.m, p.k, p.a_row, p.a_col, in_row);
  first_nans(reinterpret_cast<const In*>(p.b), p.n, p.k, p.b_col, p.b_row, in_col);
  const In nan = canonical(narrow<In>(std::numeric_limits<wide_t<In>>::quiet_NaN()));
  In* c = reinterpret_cast<In*>(p.c);
  for (int64_t i = 0; i < p.m; ++i) {
    In* row = c + i * p.c_row;
    if (!p.argmax && in_row[i] != kNone) {
      for (int64_t j = 0; j < p.n; ++j) row[j * p.c_col] = nan;
      continue;
    }
    for (int64_t j = 0; j < p.n; ++j) {
      const int32_t k = std::min(in_row[i], in_col[j]);
      if (k == kNone) continue;
      row[j * p.c_col] = nan;
      if (p.argmax) p.argmax[i * p.argmax_row + j * p.argmax_col] = static_cast<int32_t>(k + p.index_offset);
    }
  }
}

}  // namespace

Path integer_path(Semiring semiring, DType dtype, const Facts& a, const Facts& b) {
  Path path = Path::plain;
  visit(semiring, dtype, [&]<class S, class In>() {
    if constexpr (!is_float_v<In> && makes_new_values_v<S>) {
      const Path exact = has_path<S, In>(Path::wide) ? Path::wide : Path::careful;
      const uint64_t ma = magnitude(a), mb = magnitude(b);
      if constexpr (is_plus_v<S>) {
        const bool infinite = a.plus_infinity || a.minus_infinity || b.plus_infinity || b.minus_infinity;
        constexpr uint64_t kRange = static_cast<uint64_t>(kPlusRange<In>);
        path = ma > kRange || mb > kRange ? exact : infinite ? Path::mapped : Path::plain;
      } else {
        uint64_t product = 0;
        const bool fits = !__builtin_mul_overflow(ma, mb, &product) &&
                          product <= static_cast<uint64_t>(std::numeric_limits<In>::max());
        path = fits && has_path<S, In>(Path::plain) ? Path::plain : exact;
      }
    }
  });
  return path;
}

void spread_nan(const Product& product, DType dtype) {
  visit_dtype(dtype, [&]<class In>() {
    if constexpr (is_float_v<In>) spread<In>(product);
  });
}

}  // namespace tropical::cpu
