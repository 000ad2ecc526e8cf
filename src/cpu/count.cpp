// The product of values with multiplicities: tiles of the result, each with its panels of A and B packed in the types
// of the computation. Every k is taken once.
#include <algorithm>
#include <atomic>

#include "counting.h"
#include "cpu/backend.h"
#include "cpu/blocking.h"
#include "parallel.h"
#include "tropical_gemm/error.h"
#include "visit.h"
#include "workspace.h"

namespace tropical::cpu {
namespace {

constexpr int64_t kRows = 32, kCols = 64, kDepth = 256;
constexpr double kThreadWork = 1 << 16;

// V: of the values, C: of the counts while they are added; T and Stored are those in memory.
template <class T, class V, class Stored, class C>
class Counter {
  using Rule = Counting<V>;

 public:
  explicit Counter(const CountParams& p) : p_(p), is_min_(p.semiring == Semiring::min_plus) {}

  void run() {
    const int64_t down = ceil_div(p_.m, kRows), across = ceil_div(p_.n, kCols);
    const double work = static_cast<double>(p_.batch.count()) * static_cast<double>(p_.m) * static_cast<double>(p_.n) *
                        static_cast<double>(std::max<int64_t>(p_.k, 1));
    parallel_for(p_.batch.count() * down * across, work < kThreadWork ? 1 : thread_count(p_.threads),
                 [&](int64_t task, int) {
                   if (p_.cancel.raised()) throw Error(ErrorCode::cancelled, "the product was cancelled by its caller");
                   tile(task / (down * across), task / across % down * kRows, task % across * kCols);
                 });
    if (values_overflow_) throw Error(ErrorCode::overflow, kValueOverflow);
    if (counts_overflow_) throw Error(ErrorCode::overflow, kCountOverflow);
  }

 private:
  struct Element {
    V value;
    C count;
  };
  Element load(const Operand& x, const Operand& counts, int64_t at, int64_t count_at) const {
    const T value = static_cast<const T*>(x.data)[at];
    const bool zero = value == (is_min_ ? highest<T>() : lowest<T>());
    const C count =
        counts.data ? static_cast<C>(static_cast<const Stored*>(counts.data)[count_at]) : static_cast<C>(zero ? 0 : 1);
    return {Rule::load(value, is_min_), count};
  }

  void tile(int64_t member, int64_t i0, int64_t j0) {
    const int64_t rows = std::min(kRows, p_.m - i0), cols = std::min(kCols, p_.n - j0);
    const auto at = [&](const Operand& x) { return p_.batch.offset(x, member); };
    const int64_t a = at(p_.a), b = at(p_.b), ac = at(p_.a_count), bc = at(p_.b_count);
    WorkspaceScope scope(Workspace::local(),
                         (kDepth + kRows) * kCols * (sizeof(V) + sizeof(C)) + 4 * Workspace::kAlignment);
    V* values = scope.take<V>(kDepth * kCols);
    C* counts = scope.take<C>(kDepth * kCols);
    V* best = scope.take<V>(kRows * kCols);
    C* found = scope.take<C>(kRows * kCols);
    std::fill(best, best + rows * kCols, Rule::start());
    std::fill(found, found + rows * kCols, C{0});
    for (int64_t k0 = 0; k0 < p_.k; k0 += kDepth) {
      const int64_t depth = std::min(kDepth, p_.k - k0);
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t j = 0; j < kCols; ++j) {
          const int64_t col = j0 + std::min(j, cols - 1);  // columns beyond the last are not stored
          const Element x = load(p_.b, p_.b_count, b + (k0 + k) * p_.b.row + col * p_.b.col,
                                 bc + (k0 + k) * p_.b_count.row + col * p_.b_count.col);
          values[k * kCols + j] = x.value;
          counts[k * kCols + j] = x.count;
        }
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t k = 0; k < depth; ++k) {
          const Element x = load(p_.a, p_.a_count, a + (i0 + i) * p_.a.row + (k0 + k) * p_.a.col,
                                 ac + (i0 + i) * p_.a_count.row + (k0 + k) * p_.a_count.col);
          row(x, values + k * kCols, counts + k * kCols, best + i * kCols, found + i * kCols);
        }
    }
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        store(best[i * kCols + j], found[i * kCols + j], at(p_.c) + (i0 + i) * p_.c.row + (j0 + j) * p_.c.col,
              at(p_.c_count) + (i0 + i) * p_.c_count.row + (j0 + j) * p_.c_count.col);
  }

  static void row(Element x, const V* __restrict values, const C* __restrict counts, V* __restrict best,
                  C* __restrict found) {
    for (int64_t j = 0; j < kCols; ++j) {
      const V t = x.value + values[j];
      const C ways = x.count * counts[j];
      const bool better = t > best[j] || t != t, equal = t == best[j];
      found[j] = better ? ways : equal ? add_counts(found[j], ways) : found[j];
      best[j] = better ? t : best[j];
    }
  }

  void store(V best, C ways, int64_t at, int64_t count_at) {
    T value = is_min_ ? highest<T>() : lowest<T>();
    const bool none = Rule::is_absent(best) || best != best;
    if (none)
      ways = C{0};
    else if (!count_fits<Stored>(ways))
      counts_overflow_ = true;
    if (best != best || !none) {
      if (!Rule::store(best, is_min_, value)) values_overflow_ = true;
    }
    static_cast<T*>(p_.c.data)[at] = value;
    static_cast<Stored*>(p_.c_count.data)[count_at] = static_cast<Stored>(ways);
  }

  const CountParams& p_;
  const bool is_min_;
  std::atomic<bool> values_overflow_{false}, counts_overflow_{false};
};

// The largest |x| of an operand; `skipped` says which elements are left out.
template <class T, class Skipped>
double magnitude(const CountParams& p, const Operand& x, int64_t rows, int64_t cols, Skipped skipped) {
  double most = 0;
  for (int64_t g = 0; g < p.batch.count(); ++g) {
    const T* data = static_cast<const T*>(x.data) + p.batch.offset(x, g);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) {
        const T v = data[i * x.row + j * x.col];
        if (!skipped(v)) most = std::max(most, v < 0 ? -static_cast<double>(v) : static_cast<double>(v));
      }
  }
  return most;
}

// Whether every sum of counts stays far within int64.
bool counts_are_small(const CountParams& p) {
  const auto none = [](int64_t) { return false; };
  const double a = p.a_count.data ? magnitude<int64_t>(p, p.a_count, p.m, p.k, none) : 1;
  const double b = p.b_count.data ? magnitude<int64_t>(p, p.b_count, p.k, p.n, none) : 1;
  return a * b * static_cast<double>(p.k) < 0x1p62;
}

template <class T, class V>
void with_counts(const CountParams& p) {
  if (!p.counts_are_int64)
    Counter<T, V, double, double>(p).run();
  else if (counts_are_small(p))
    Counter<T, V, int64_t, int64_t>(p).run();
  else
    Counter<T, V, int64_t, int128>(p).run();
}

}  // namespace

void count_matmul(const CountParams& params) {
  if (params.m == 0 || params.n == 0 || params.batch.count() == 0) return;
  // Tiles are wide: the longer side lies along them.
  const CountParams p = params.n < std::min(kCols, params.m) ? turned(params) : params;
  visit_dtype(p.dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, int64_t>) {
      // Only the zero is mapped to what absorbs; the extreme at the other end is a number.
      const T zero = p.semiring == Semiring::min_plus ? highest<T>() : lowest<T>();
      const auto is_zero = [zero](T x) { return x == zero; };
      const double most = std::max(magnitude<T>(p, p.a, p.m, p.k, is_zero), magnitude<T>(p, p.b, p.k, p.n, is_zero));
      if (most < 0x1p59)
        with_counts<T, int64_t>(p);
      else
        with_counts<T, int128>(p);
    } else if constexpr (std::is_same_v<T, int32_t>) {
      with_counts<T, int64_t>(p);
    } else if constexpr (counts_v<T>) {
      with_counts<T, T>(p);
    }
  });
}

}  // namespace tropical::cpu
