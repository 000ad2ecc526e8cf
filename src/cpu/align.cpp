// Forced alignment: one sequence after the other, the states of a step in one loop, the choices kept as bytes.
#include <algorithm>

#include "cpu/backend.h"
#include "parallel.h"
#include "trellis.h"
#include "tropical_gemm/error.h"
#include "visit.h"
#include "workspace.h"

namespace tropical::cpu {
namespace {

constexpr int64_t kStepsBetweenLooks = 256;

template <class T>
void align_sequence(const AlignParams& p, int64_t b) {
  using F = wide_t<T>;
  const Alignment<T> x(p, b);
  const auto none = [&](int64_t from, F score) {
    for (int64_t t = from; t < p.steps; ++t) x.set(t, -1, score);
  };
  const auto states = static_cast<size_t>(x.states), steps = static_cast<size_t>(x.steps);
  WorkspaceScope scope(Workspace::local(), 2 * Workspace::padded(states * sizeof(F)) +
                                               Workspace::padded(states * sizeof(int64_t)) + Workspace::padded(states) +
                                               Workspace::padded(states * steps));
  F* before = scope.take<F>(states);
  F* now = scope.take<F>(states);
  int64_t* label = scope.take<int64_t>(states);
  bool* may_skip = scope.take<bool>(states);
  uint8_t* advance = scope.take<uint8_t>(states * steps);
  bool possible = true;
  for (int64_t s = 0; s < x.states; ++s) {
    label[s] = x.label(s);
    may_skip[s] = x.may_skip(s);
    possible &= s % 2 == 0 || x.is_class(label[s]);
  }
  std::fill(before, before + states, lowest<F>());
  std::fill(now, now + states, lowest<F>());
  for (int64_t t = 0; possible && t < x.steps; ++t, std::swap(before, now)) {
    if (t % kStepsBetweenLooks == 0 && p.cancel.raised())
      throw Error(ErrorCode::cancelled, "the alignment was cancelled by its caller");
    for (int64_t s = x.first_state(t); s < x.end_state(t); ++s) {
      const F best = t == 0 ? F{0} : x.step(before, s, may_skip[s], advance[t * x.states + s]);
      now[s] = x.extended(best, x.score(t, label[s]));
    }
  }
  int64_t state = 0;
  if (x.steps == 0) return none(0, x.targets == 0 ? F{0} : lowest<F>());
  if (!possible || !x.end(before, state)) return none(0, lowest<F>());
  none(x.steps, 0);
  for (int64_t t = x.steps - 1; t >= 0; --t) {
    x.set(t, label[state], x.score(t, label[state]));
    if (t > 0) state -= advance[t * x.states + state];
  }
}

}  // namespace

void align(const AlignParams& p) {
  visit_dtype(p.dtype, [&]<class T>() {
    if constexpr (is_float_v<T>)
      parallel_for(p.batch, thread_count(p.threads), [&](int64_t b, int) { align_sequence<T>(p, b); });
  });
}

}  // namespace tropical::cpu
