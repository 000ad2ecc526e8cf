// How an element of a graph's matrix is read, and when a closed walk is too good: once for both backends.
#pragma once
#include "lowering.h"
#include "params.h"

namespace tropical {

template <class S, class T>
struct EdgeRule {
  T no_edge{};
  int64_t n = 0;
  bool has_no_edge = false, unweighted = false, reflexive = false;

  TROPICAL_HD static bool same(T x, T y) { return !S::better(x, y) && !S::better(y, x); }
  TROPICAL_HD static bool is_zero(T x) { return same(x, S::template zero<T>()); }
  TROPICAL_HD static double number(T x) { return static_cast<double>(widen(x)); }

  // The weight of an edge, or zero; what is strange about it goes to the report.
  TROPICAL_HD T edge(T x, int64_t i, int64_t j, GraphReport& found) const {
    const int64_t at = i * n + j;
    const bool named = has_no_edge && (is_nan(no_edge) ? is_nan(x) : !is_nan(x) && same(x, no_edge));
    if (named || (!is_nan(x) && is_zero(x))) {
      if (i != j) ++found.absent;
      return S::template zero<T>();
    }
    if (is_nan(x)) {
      if (at < found.nan_at) found.nan_at = at;
      return S::template zero<T>();
    }
    if (unweighted) return detail::number<T>(1);
    const double value = number(x);
    if constexpr (!std::is_same_v<T, bool>) {
      // Where the order's other end is no weight: + and * would grow without bounds there.
      if (makes_new_values_v<S> && same(x, S::kIsMax ? highest<T>() : lowest<T>())) {
        if (at < found.infinite_at) found.infinite_at = at;
        return x;
      }
    }
    if (value == 0 && i != j) ++found.zeros;
    if (value < 0 && at < found.negative_at) found.negative_at = at;
    const double size = value < 0 ? -value : value;
    if (size > found.magnitude && size <= 1.7976931348623157e308) found.magnitude = size;
    return x;
  }
  // What the matrix of the closure starts from.
  TROPICAL_HD T element(T x, bool on_diagonal) const {
    const T one = S::template one<T>();
    return canonical(on_diagonal && reflexive && !S::better(x, one) ? one : x);
  }
};

template <class S, class T>
EdgeRule<S, T> edge_rule(const GraphParams& p) {
  EdgeRule<S, T> rule;
  rule.no_edge = read_element(reinterpret_cast<const T*>(&p.no_edge));
  rule.n = p.n;
  rule.has_no_edge = p.has_no_edge, rule.unweighted = p.unweighted, rule.reflexive = p.reflexive;
  return rule;
}

// An element of the diagonal that is better than `one`: within the tolerance it becomes `one`; else there is no best
// closed walk, and the answer is no.
template <class S, class T>
TROPICAL_HD bool settles(T& x, double tolerance) {
  const T one = S::template one<T>();
  if (!S::better(x, one)) return true;
  if constexpr (is_float_v<T>) {
    const double gap = static_cast<double>(widen(x)) - static_cast<double>(widen(one));
    if ((gap < 0 ? -gap : gap) <= tolerance) {
      x = one;
      return true;
    }
  }
  return false;
}

}  // namespace tropical
