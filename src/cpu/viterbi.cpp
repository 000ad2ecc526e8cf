// The Viterbi recurrence: one product of values for each step, then each path is traced back through the stored values,
// where the taken state is found again by the same sums. No backpointers are stored.
#include <algorithm>
#include <tuple>
#include <utility>

#include "cpu/backend.h"
#include "parallel.h"
#include "trellis.h"
#include "trellis_scan.h"
#include "tropical_gemm/error.h"
#include "visit.h"
#include "workspace.h"

namespace tropical::cpu {
namespace {

template <class T>
class Recurrence {
  using F = wide_t<T>;

 public:
  explicit Recurrence(const ViterbiParams& p)
      : p_(p),
        matrices_(sequences_share(p) ? 1 : p.batch),
        scope_(workspace_, Workspace::padded(static_cast<size_t>(history_size()) * sizeof(F)) +
                               2 * Workspace::padded(static_cast<size_t>(copies_size()) * sizeof(F)) +
                               Workspace::padded(static_cast<size_t>(scan_size()) * sizeof(F))) {
    history_ = scope_.template take<F>(static_cast<size_t>(history_size()));
    scan_ = scope_.template take<F>(static_cast<size_t>(scan_size()));
    if (!copies()) return;
    matrix_ = scope_.template take<F>(static_cast<size_t>(copies_size()));
    transposed_ = scope_.template take<F>(static_cast<size_t>(copies_size()));
    if (steps_share(p_)) copy_matrices(0, matrices_, 0, true);
  }

  void run() {
    const double work = static_cast<double>(p_.batch * p_.steps) * static_cast<double>(p_.states * p_.states);
    const int threads = work < kProductThreadWork ? 1 : thread_count(p_.threads);
    // Threads that each compute sequences of their own need not wait for each other at every step; but they must not
    // share the place where a step's matrices are widened.
    const bool apart = p_.batch >= threads && (steps_share(p_) || !copies()) && !p_.scan;
    const int64_t parts = apart ? threads : 1;
    parallel_for(parts, static_cast<int>(parts), [&](int64_t part, int) {
      const int64_t first = p_.batch * part / parts, last = p_.batch * (part + 1) / parts;
      if (first == last) return;
      start(first, last);
      if (p_.scan)
        scan(threads);
      else
        forward(first, last, parts > 1 ? 1 : threads);
      for (int64_t b = first; b < last; ++b) trace(b);
    });
  }

 private:
  // Half types are widened for the product; matrices that serve all steps are worth a transpose for the trace.
  bool copies() const { return is_half_v<T> || steps_share(p_); }
  int64_t history_size() const { return p_.steps * p_.batch * p_.states; }
  int64_t copies_size() const { return copies() ? matrices_ * p_.states * p_.states : 0; }
  int64_t scan_size() const {
    return p_.scan && p_.steps > 1 ? p_.batch * scan_matrices(p_.steps - 1) * p_.states * p_.states : 0;
  }
  F* values(int64_t t, int64_t b) const { return history_ + (t * p_.batch + b) * p_.states; }

  static F read(const Strided& x, int64_t at) { return widen(static_cast<const T*>(x.data)[at]); }
  int64_t transition_at(int64_t b, int64_t t) const {
    return b * p_.transition.stride[0] + (t - 1) * p_.transition.stride[1];
  }

  // The matrices of step t (those between t - 1 and t) of sequences [first, last), widened.
  void copy_matrices(int64_t first, int64_t last, int64_t t, bool transpose) {
    for (int64_t b = first; b < last; ++b) {
      F* to = matrix_ + b * p_.states * p_.states;
      F* across = transposed_ + b * p_.states * p_.states;
      const int64_t at = transition_at(b, t);
      for (int64_t i = 0; i < p_.states; ++i)
        for (int64_t j = 0; j < p_.states; ++j) {
          const F x = read(p_.transition, at + i * p_.transition.stride[2] + j * p_.transition.stride[3]);
          to[i * p_.states + j] = x;
          if (transpose) across[j * p_.states + i] = x;
        }
    }
  }

  // v[t,j] = best[j] + emission[t,j]. Values after the end of a sequence are never read, but must not slow the product.
  template <class Best>
  void add_emission(int64_t b, int64_t t, Best best) const {
    F* v = values(t, b);
    if (t >= length_of(p_, b)) return void(std::fill(v, v + p_.states, F{0}));
    const int64_t at = b * p_.emission.stride[0] + t * p_.emission.stride[1];
    for (int64_t j = 0; j < p_.states; ++j) v[j] = best(j) + read(p_.emission, at + j * p_.emission.stride[2]);
  }

  Operand step_transition(int64_t first, int64_t last, int64_t t) {
    const int64_t s = p_.states;
    if (!copies()) {
      const auto* data = static_cast<const T*>(p_.transition.data) + transition_at(first, t);
      return {const_cast<T*>(data), p_.transition.stride[2], p_.transition.stride[3], {p_.transition.stride[0]}};
    }
    const bool one = matrices_ == 1;
    if (!steps_share(p_)) copy_matrices(one ? 0 : first, one ? 1 : last, t, false);
    return {matrix_ + (one ? 0 : first) * s * s, s, 1, {one ? 0 : s * s}};
  }

  void start(int64_t first, int64_t last) const {
    for (int64_t b = first; p_.steps > 0 && b < last; ++b)
      add_emission(b, 0, [&](int64_t j) {
        return p_.initial.data ? read(p_.initial, b * p_.initial.stride[0] + j * p_.initial.stride[1]) : F{0};
      });
  }

  // All values at once; the matrices are those of the transitions with the emissions added.
  void scan(int threads) {
    const int64_t s = p_.states, n = std::max<int64_t>(p_.steps - 1, 0);
    parallel_for(p_.batch * n, threads, [&](int64_t task, int) {
      const int64_t b = task / n, t = task % n + 1;
      F* to = scan_ + task * s * s;
      const bool counts = t < length_of(p_, b);
      const int64_t e = b * p_.emission.stride[0] + t * p_.emission.stride[1], a = transition_at(b, t);
      for (int64_t i = 0; i < s; ++i)
        for (int64_t j = 0; j < s; ++j)
          to[i * s + j] = counts ? read(p_.transition, a + i * p_.transition.stride[2] + j * p_.transition.stride[3]) +
                                       read(p_.emission, e + j * p_.emission.stride[2])
                                 : F{0};
    });
    scan_values(history_, p_.batch * s, s, p_.batch, s, n, scan_, [&](MatmulParams m) {
      m.threads = threads;
      m.filtering = p_.filtering;
      m.cancel = p_.cancel;
      matmul(m);
    });
  }

  void forward(int64_t first, int64_t last, int threads) {
    const int64_t s = p_.states;
    MatmulParams m;
    m.semiring = Semiring::max_plus;
    m.dtype = TypeInfo<F>::kId;
    m.k = m.n = s;
    m.threads = threads;
    m.filtering = p_.filtering;
    m.cancel = p_.cancel;
    const bool share = sequences_share(p_);
    m.m = share ? last - first : 1;
    if (!share) m.batch = {1, {last - first}};
    for (int64_t t = 1; t < p_.steps; ++t) {
      if (p_.cancel.raised()) throw Error(ErrorCode::cancelled, "the recurrence was cancelled by its caller");
      m.b = step_transition(first, last, t);
      m.a = {values(t - 1, first), s, 1, {s}};
      m.c = {values(t, first), s, 1, {s}};
      matmul(m);
      for (int64_t b = first; b < last; ++b) {
        const F* v = values(t, b);
        add_emission(b, t, [v](int64_t j) { return v[j]; });
      }
    }
  }

  // The first of the largest, or the first NaN, among candidate(0), ...
  template <class Candidate>
  std::pair<int64_t, F> best_of(Candidate candidate) const {
    int64_t index = 0;
    F best = candidate(0);
    for (int64_t i = 1; i < p_.states; ++i) {
      const F x = candidate(i);
      if (takes(x, best)) best = x, index = i;
    }
    return {index, best};
  }

  void trace(int64_t b) const {
    const int64_t length = length_of(p_, b), s = p_.states;
    int64_t state = -1;
    F score{0};
    if (length > 0) {
      const F* v = values(length - 1, b);
      const int64_t at = b * p_.final.stride[0];
      std::tie(state, score) =
          best_of([&](int64_t j) { return p_.final.data ? v[j] + read(p_.final, at + j * p_.final.stride[1]) : v[j]; });
    }
    static_cast<F*>(p_.scores.data)[b * p_.scores.stride[0]] = canonical(score);
    const bool possible = length > 0 && score != lowest<F>();
    for (int64_t t = possible ? length : 0; t < p_.steps; ++t) set_path(p_, b, t, -1);
    for (int64_t t = possible ? length - 1 : -1; t >= 0; --t) {
      set_path(p_, b, t, state);
      if (t == 0) break;
      const F* v = values(t - 1, b);
      if (steps_share(p_)) {
        const F* to_state = transposed_ + ((matrices_ == 1 ? 0 : b) * s + state) * s;
        state = best_of([&](int64_t i) { return v[i] + to_state[i]; }).first;
      } else {
        const int64_t at = transition_at(b, t) + state * p_.transition.stride[3];
        state = best_of([&](int64_t i) { return v[i] + read(p_.transition, at + i * p_.transition.stride[2]); }).first;
      }
    }
  }

  const ViterbiParams& p_;
  int64_t matrices_;
  Workspace workspace_;  // of its own: the products use the thread's
  WorkspaceScope scope_;
  F* history_ = nullptr;     // (step, batch, state)
  F* matrix_ = nullptr;      // (matrix, from, to)
  F* transposed_ = nullptr;  // (matrix, to, from)
  F* scan_ = nullptr;        // the matrices of a scan
};

}  // namespace

void viterbi(const ViterbiParams& params) {
  if (params.batch == 0) return;
  visit_dtype(params.dtype, [&]<class T>() {
    if constexpr (is_float_v<T>) Recurrence<T>(params).run();
  });
}

}  // namespace tropical::cpu
