#include "cpu/scan.h"

#include <algorithm>
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

template <class In>
void spread(const Product& p) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  Workspace& workspace = Workspace::local();
  const WorkspaceScope scope(workspace, static_cast<size_t>(p.m + p.n) * 8 + 2 * Workspace::kAlignment);
  // The first k of a NaN in each row of A and column of B.
  int64_t* in_row = workspace.take<int64_t>(static_cast<size_t>(p.m));
  int64_t* in_col = workspace.take<int64_t>(static_cast<size_t>(p.n));
  const In* a = reinterpret_cast<const In*>(p.a);
  const In* b = reinterpret_cast<const In*>(p.b);
  for (int64_t i = 0; i < p.m; ++i) {
    in_row[i] = kNone;
    for (int64_t k = 0; k < p.k && in_row[i] == kNone; ++k)
      if (is_nan(a[i * p.a_row + k * p.a_col])) in_row[i] = k;
  }
  std::fill(in_col, in_col + p.n, kNone);
  for (int64_t k = p.k - 1; k >= 0; --k)
    for (int64_t j = 0; j < p.n; ++j)
      if (is_nan(b[k * p.b_row + j * p.b_col])) in_col[j] = k;
  const In nan = canonical(narrow<In>(std::numeric_limits<wide_t<In>>::quiet_NaN()));
  In* c = reinterpret_cast<In*>(p.c);
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      const int64_t k = std::min(in_row[i], in_col[j]);
      if (k == kNone) continue;
      c[i * p.c_row + j * p.c_col] = nan;
      if (p.argmax) p.argmax[i * p.argmax_row + j * p.argmax_col] = static_cast<int32_t>(k + p.index_offset);
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
