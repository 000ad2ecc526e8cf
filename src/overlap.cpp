#include "overlap.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "params.h"
#include "tensor.h"

namespace tropical {
namespace {

// One summand coefficient * v with 0 <= v <= limit.
struct Term {
  int64_t coefficient;
  int64_t limit;
};

// Decides whether a sum of terms can fall into [low, high]: a bounded Diophantine problem, solved by depth-first
// search over coefficients in falling order, cut by the reachable maximum and by the gcd of what remains.
class Sum {
 public:
  void add(int64_t coefficient, int64_t limit) {
    if (coefficient == 0 || limit == 0) return;
    for (int i = 0; i < count_; ++i)
      if (terms_[i].coefficient == coefficient) {
        terms_[i].limit += limit;
        return;
      }
    terms_[count_++] = {coefficient, limit};
  }

  bool reaches(int64_t low, int64_t high) {
    std::sort(terms_.begin(), terms_.begin() + count_,
              [](const Term& x, const Term& y) { return x.coefficient > y.coefficient; });
    maximum_[count_] = 0;
    gcd_[count_] = 0;
    for (int i = count_ - 1; i >= 0; --i) {
      maximum_[i] = maximum_[i + 1] + terms_[i].coefficient * terms_[i].limit;
      gcd_[i] = std::gcd(gcd_[i + 1], terms_[i].coefficient);
    }
    return search(0, low, high);
  }

 private:
  static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

  bool search(int i, int64_t low, int64_t high) {
    low = std::max<int64_t>(low, 0);
    high = std::min(high, maximum_[i]);
    if (low > high) return false;
    if (low == 0) return true;  // all remaining v = 0
    if (i == count_) return false;
    if (floor_div(high, gcd_[i]) * gcd_[i] < low) return false;
    if (++steps_ > kMaxSteps) return true;  // not shown to be disjoint: refuse
    const auto [c, limit] = terms_[i];
    const int64_t first = std::max<int64_t>(0, -floor_div(maximum_[i + 1] - low, c));
    const int64_t last = std::min(limit, high / c);
    for (int64_t v = last; v >= first; --v)
      if (search(i + 1, low - c * v, high - c * v)) return true;
    return false;
  }

  static constexpr int kMaxTerms = 2 * kMaxPermuteAxes;
  static constexpr int64_t kMaxSteps = 1'000'000;
  std::array<Term, kMaxTerms> terms_{};
  std::array<int64_t, kMaxTerms + 1> maximum_{}, gcd_{};
  int count_ = 0;
  int64_t steps_ = 0;
};

// Lowest address and extent in bytes up to the first byte of the last element.
struct Range {
  int64_t begin;
  int64_t reach;
};
Range range(const DLTensor& x) {
  Range r{reinterpret_cast<intptr_t>(data_of(x)), 0};
  for (int d = 0; d < x.ndim; ++d) {
    if (x.shape[d] == 1) continue;  // its stride means nothing
    const int64_t bytes = stride_of(x, d) * item_bytes(x);
    const int64_t span = bytes * (x.shape[d] - 1);
    if (bytes < 0) r.begin += span;
    r.reach += std::abs(span);
  }
  return r;
}

void add_axes(Sum& sum, const DLTensor& x) {
  for (int d = 0; d < x.ndim; ++d)
    if (x.shape[d] > 1) sum.add(std::abs(stride_of(x, d)) * item_bytes(x), x.shape[d] - 1);
}

}  // namespace

bool overlaps(const DLTensor& x, const DLTensor& y) {
  if (is_empty(x) || is_empty(y)) return false;
  const Range rx = range(x), ry = range(y);
  const int64_t sx = item_bytes(x), sy = item_bytes(y);
  if (rx.begin >= ry.begin + ry.reach + sy || ry.begin >= rx.begin + rx.reach + sx) return false;
  // address(x) - address(y) in (-sx, sy), with y's indices counted from their far end to make all terms positive.
  Sum sum;
  add_axes(sum, x);
  add_axes(sum, y);
  const int64_t target = ry.begin + ry.reach - rx.begin;
  return sum.reaches(target - sx + 1, target + sy - 1);
}

bool overlaps_itself(const DLTensor& x) {
  if (is_empty(x)) return false;
  const int64_t size = item_bytes(x);
  std::array<Term, kMaxPermuteAxes> axes{};
  int count = 0;
  for (int d = 0; d < x.ndim; ++d)
    if (x.shape[d] > 1) axes[count++] = {std::abs(stride_of(x, d)) * size, x.shape[d] - 1};
  std::sort(axes.begin(), axes.begin() + count,
            [](const Term& a, const Term& b) { return a.coefficient < b.coefficient; });
  // Each axis steps over all that the smaller ones reach: the usual case.
  int64_t reach = size - 1;
  bool nested = true;
  for (int i = 0; i < count && nested; ++i) {
    nested = axes[i].coefficient > reach;
    reach += axes[i].coefficient * axes[i].limit;
  }
  if (nested) return false;
  // Otherwise look for a difference of indices, its leading entry positive, that moves less than one element.
  for (int lead = 0; lead < count; ++lead) {
    Sum sum;
    int64_t offset = axes[lead].coefficient;  // the leading difference is at least 1
    sum.add(axes[lead].coefficient, axes[lead].limit - 1);
    for (int i = 0; i < lead; ++i) {
      sum.add(axes[i].coefficient, 2 * axes[i].limit);
      offset -= axes[i].coefficient * axes[i].limit;
    }
    if (sum.reaches(-offset - size + 1, -offset + size - 1)) return true;
    if (axes[lead].coefficient == 0) return true;
  }
  return false;
}

}  // namespace tropical
