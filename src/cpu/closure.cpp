// The steps of a closure on the CPU: plain loops, of order n² a pivot beside its products.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "cpu/backend.h"
#include "cpu/panel.h"
#include "edge_rule.h"
#include "parallel.h"
#include "tropical_gemm/error.h"
#include "visit.h"

namespace tropical::cpu {
namespace {

// Elements that a thread takes at a time.
constexpr int64_t kTaskElements = 1 << 16;

// Elements from one row of predecessors to the next that are no reason for doubt; see resolve.
constexpr int64_t kDenseRow = 1 << 16;

// body(first, last) for runs of rows.
template <class Body>
void for_rows(const GraphParams& p, int64_t rows, int64_t cols, const Body& body) {
  const int64_t each = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(cols, 1));
  const int64_t tasks = (rows + each - 1) / each;
  parallel_for(tasks, tasks < 2 ? 1 : thread_count(p.threads), [&](int64_t task, int) {
    if (p.cancel.raised()) throw Error(ErrorCode::cancelled, "the closure was cancelled by its caller");
    body(task * each, std::min(rows, (task + 1) * each));
  });
}

template <class T>
T* row_of(const Operand& x, int64_t i) {
  return static_cast<T*>(x.data) + i * x.row;
}

void lower(int64_t& x, int64_t y) { x = std::min(x, y); }

// What the threads of a call found, put together. The mutex is the call's own: a child process that is forked meanwhile
// would find a shared one locked for good.
void merge(std::mutex& mutex, GraphReport& into, const GraphReport& part) {
  const std::scoped_lock hold(mutex);
  lower(into.nan_at, part.nan_at);
  lower(into.infinite_at, part.infinite_at);
  lower(into.negative_at, part.negative_at);
  into.zeros += part.zeros;
  into.absent += part.absent;
  into.magnitude = std::max(into.magnitude, part.magnitude);
}

// Square blocks: the transposed one of an undirected graph is read along its rows too.
constexpr int64_t kLoadBlock = 64;

template <class S, class T>
class Load {
 public:
  static constexpr bool kHasBits =
      std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;

  explicit Load(const GraphParams& p) : p_(p), load_(edge_rule<S, T>(p)) {}

  void run() const {
    std::mutex mutex;
    if (takes_rows()) {
      for_rows(p_, p_.n, p_.n, [&](int64_t first, int64_t last) {
        GraphReport found;
        for (int64_t i = first; i < last; ++i) row(i, found);
        merge(mutex, *p_.report, found);
      });
      return;
    }
    const int64_t blocks = (p_.n + kLoadBlock - 1) / kLoadBlock;
    for_rows(p_, blocks, kLoadBlock * p_.n, [&](int64_t first, int64_t last) {
      GraphReport found;
      for (int64_t i = first; i < last; ++i)
        for (int64_t j = p_.undirected ? i : 0; j < blocks; ++j) block(i * kLoadBlock, j * kLoadBlock, found);
      merge(mutex, *p_.report, found);
    });
  }

 private:
  T source(int64_t i, int64_t j) const { return read_element(row_of<const T>(p_.from, i) + j * p_.from.col); }

  // Rows as they lie in memory: loops that compilers turn into vector code, and the rule for each element only where
  // there is something strange.
  bool takes_rows() const {
    return kHasBits && !p_.undirected && !p_.unweighted && !p_.has_no_edge && p_.from.col == 1 &&
           (!p_.to.data || p_.to.col == 1) && (!p_.pred.data || p_.pred.col == 1);
  }
  void row(int64_t i, GraphReport& found) const {
    if constexpr (kHasBits) {
      const T* x = row_of<const T>(p_.from, i);
      if (!look(x, i, found)) {
        for (int64_t j = 0; j < p_.n; ++j) put(i, j, edge(i, j, found));
        return;
      }
      const T zero = S::template zero<T>(), diagonal = x[i];
      if (p_.pred.data) {
        int32_t* pred = row_of<int32_t>(p_.pred, i);
        for (int64_t j = 0; j < p_.n; ++j) pred[j] = x[j] == zero ? kNoPredecessor : static_cast<int32_t>(i);
        pred[i] = kNoPredecessor;
      }
      if (p_.to.data) {
        T* to = row_of<T>(p_.to, i);
        for (int64_t j = 0; j < p_.n; ++j) to[j] = static_cast<T>(x[j] + T{0});  // -0 becomes +0
        to[i] = load_.element(diagonal, true);
      }
    }
  }
  // Whether there is neither NaN nor a forbidden infinity; then what the row has to tell is told.
  bool look(const T* x, int64_t i, GraphReport& found) const requires(kHasBits) {
    using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    constexpr bool kFloat = std::is_floating_point_v<T>;
    constexpr T kZero = S::template zero<T>(), kOther = S::kIsMax ? highest<T>() : lowest<T>();
    constexpr Bits kInfinite = detail::bits_to<Bits>(kFloat ? std::numeric_limits<T>::infinity() : T{0});
    constexpr Bits kMagnitude = std::numeric_limits<Bits>::max();
    Bits absent = 0, zeros = 0, nans = 0, others = 0, largest = 0, signs = 0;
    for (int64_t j = 0; j < p_.n; ++j) {
      const Bits bits = detail::bits_to<Bits>(x[j]);
      const Bits size = kFloat ? bits & kMagnitude : bits < 0 ? static_cast<Bits>(~bits) : bits;  // |x|, or |x| - 1
      const bool is_absent = x[j] == kZero, is_other = makes_new_values_v<S> && x[j] == kOther;
      absent += is_absent;
      others += is_other;
      zeros += (x[j] == T{0}) & !is_absent;
      nans += kFloat && size > kInfinite;
      const bool counts = !is_absent && !is_other && (!kFloat || size < kInfinite);
      largest = std::max(largest, counts ? size : Bits{0});
      signs |= counts && x[j] < T{0};
    }
    if (nans || others) return false;
    const T diagonal = x[i];
    found.absent += absent - (diagonal == kZero);
    found.zeros += zeros - (diagonal == T{0} && diagonal != kZero);
    const double magnitude =
        kFloat ? static_cast<double>(detail::bits_to<T>(largest)) : static_cast<double>(largest) + (signs != 0);
    found.magnitude = std::max(found.magnitude, magnitude);
    if (signs && found.negative_at == GraphReport::kNowhere) {
      int64_t j = 0;
      while (!(x[j] < T{0}) || x[j] == kZero) ++j;
      found.negative_at = i * p_.n + j;
    }
    return true;
  }

  void block(int64_t i0, int64_t j0, GraphReport& found) const {
    const int64_t i1 = std::min(p_.n, i0 + kLoadBlock), j1 = std::min(p_.n, j0 + kLoadBlock);
    for (int64_t i = i0; i < i1; ++i)
      for (int64_t j = p_.undirected ? std::max(i, j0) : j0; j < j1; ++j) {
        const T x = edge(i, j, found);
        if (!p_.undirected) {
          put(i, j, x);
          continue;
        }
        const T y = i == j ? x : edge(j, i, found);
        const T best = S::better(y, x) ? y : x;
        put(i, j, best);
        if (i != j) put(j, i, best);
      }
  }
  T edge(int64_t i, int64_t j, GraphReport& found) const { return load_.edge(source(i, j), i, j, found); }
  void put(int64_t i, int64_t j, T x) const {
    if (p_.to.data) row_of<T>(p_.to, i)[j * p_.to.col] = load_.element(x, i == j);
    if (p_.pred.data)
      row_of<int32_t>(p_.pred, i)[j * p_.pred.col] =
          i == j || load_.is_zero(x) ? kNoPredecessor : static_cast<int32_t>(i);
  }

  const GraphParams& p_;
  const EdgeRule<S, T> load_;
};

template <class T>
void copy(const GraphParams& p) {
  for_rows(p, p.m, p.n, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const T* from = row_of<const T>(p.from, i);
      T* to = row_of<T>(p.to, i);
      if (p.from.col == 1 && p.to.col == 1) {
        std::memcpy(to, from, static_cast<size_t>(p.n) * sizeof(T));
      } else {
        for (int64_t j = 0; j < p.n; ++j) to[j * p.to.col] = from[j * p.from.col];
      }
    }
  });
}

template <class T>
auto bits_of(T x) {
  if constexpr (is_half_v<T>)
    return x.bits;
  else if constexpr (std::is_floating_point_v<T>)
    return detail::bits_to<std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>(x);
  else
    return x;
}

template <class T>
void differs(const GraphParams& p) {
  std::atomic<bool> found{false};
  for_rows(p, p.m, p.n, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last && !found; ++i) {
      const T *x = row_of<const T>(p.to, i), *y = row_of<const T>(p.from, i);
      for (int64_t j = 0; j < p.n; ++j)
        if (bits_of(x[j * p.to.col]) != bits_of(y[j * p.from.col])) found = true;
    }
  });
  if (found) p.report->differs = 1;
}

// Whether node k of the block has no closed walk better than `one`; else it is reported.
template <class S, class T>
bool settle(T& x, int64_t k, const GraphParams& p) {
  if (settles<S>(x, p.tolerance)) return true;
  lower(p.report->diverged, p.first + k);
  return false;
}

template <class S, class T>
void diagonal(const GraphParams& p) {
  for (int64_t k = 0; k < p.n; ++k) {
    T& x = row_of<T>(p.to, k)[k * p.to.col];
    if (!S::better(read_element(&x), S::template one<T>())) continue;
    if (!settle<S>(x, k, p)) return;
    if (p.pred.data) row_of<int32_t>(p.pred, k)[k * p.pred.col] = kNoPredecessor;
  }
}

template <class S, class T>
void start(const GraphParams& p) {
  for (int64_t j = 0; j < p.n; ++j) {
    row_of<T>(p.to, 0)[j * p.to.col] = p.first == -1 || j == p.first ? S::template one<T>() : S::template zero<T>();
    if (p.pred.data) row_of<int32_t>(p.pred, 0)[j * p.pred.col] = kNoPredecessor;
  }
}

void resolve(const GraphParams& p) {
  // The kernel takes offsets of 32 bits, which the rows of a pivot stay within unless they are far apart.
  const bool dense = p.pred.col == 1 && p.pred_from.col == 1 && std::abs(p.pred_from.row) <= std::max(p.n, kDenseRow);
  for_rows(p, p.m, p.n, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      int32_t* pred = row_of<int32_t>(p.pred, i);
      if (dense) {
        resolve_row(pred, static_cast<const int32_t*>(p.pred_from.data), p.pred_from.row, p.limit, p.n);
        continue;
      }
      for (int64_t j = 0; j < p.n; ++j) {
        int32_t& x = pred[j * p.pred.col];
        if (x >= p.limit) x = row_of<const int32_t>(p.pred_from, x - p.limit)[j * p.pred_from.col];
      }
    }
  });
}

}  // namespace

void graph_step(const GraphParams& p) {
  if (p.step == GraphStep::resolve) return resolve(p);
  if (p.step == GraphStep::panel) return close_panel(p);
  visit_dtype(p.dtype, [&]<class T>() {
    if (p.step == GraphStep::copy) return copy<Stored<T>>(p);
    if (p.step == GraphStep::differs) return differs<Stored<T>>(p);
    visit_semiring(p.semiring, [&]<class S>() {
      if constexpr (supported_v<S, T>) {
        if (p.step == GraphStep::load) return Load<S, T>(p).run();
        if (p.step == GraphStep::start) return start<S, T>(p);
        if (p.step == GraphStep::diagonal) return diagonal<S, T>(p);
      }
    });
  });
}

}  // namespace tropical::cpu
