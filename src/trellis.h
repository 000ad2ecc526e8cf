// What both backends say of a trellis: which candidate is taken, where a sequence ends, what may follow what.
#pragma once
#include "params.h"

namespace tropical {

// x replaces the candidate taken so far: better, or the first NaN.
template <class F>
TROPICAL_HD constexpr bool takes(F x, F best) {
  return x > best || (x != x && best == best);
}

// An element of an array of int32 or int64.
TROPICAL_HD constexpr int64_t integer_at(const Strided& x, bool is_int64, int64_t at) {
  return is_int64 ? static_cast<const int64_t*>(x.data)[at] : static_cast<const int32_t*>(x.data)[at];
}
TROPICAL_HD constexpr void set_integer(const Strided& x, bool is_int64, int64_t at, int64_t value) {
  if (is_int64)
    static_cast<int64_t*>(x.data)[at] = value;
  else
    static_cast<int32_t*>(x.data)[at] = static_cast<int32_t>(value);
}

// How many of `all` elements of sequence b count.
TROPICAL_HD constexpr int64_t length_of(const Strided& lengths, bool is_int64, int64_t b, int64_t all) {
  if (!lengths.data) return all;
  const int64_t n = integer_at(lengths, is_int64, b * lengths.stride[0]);
  return n < 0 ? 0 : n > all ? all : n;
}

TROPICAL_HD constexpr int64_t length_of(const ViterbiParams& p, int64_t b) {
  return length_of(p.lengths, p.lengths_are_int64, b, p.steps);
}
TROPICAL_HD constexpr void set_path(const ViterbiParams& p, int64_t b, int64_t t, int64_t state) {
  set_integer(p.paths, p.paths_are_int64, b * p.paths.stride[0] + t * p.paths.stride[1], state);
}
TROPICAL_HD constexpr int64_t path_at(const ViterbiParams& p, int64_t b, int64_t t) {
  return integer_at(p.paths, p.paths_are_int64, b * p.paths.stride[0] + t * p.paths.stride[1]);
}

// One matrix of transitions serves all steps: it is copied once, in the type of the recurrence, and so is its
// transpose.
TROPICAL_HD constexpr bool steps_share(const ViterbiParams& p) { return p.transition.stride[1] == 0; }
// One matrix of transitions serves all sequences.
TROPICAL_HD constexpr bool sequences_share(const ViterbiParams& p) { return p.transition.stride[0] == 0; }

// Alignment: the states of one sequence are blank, target 0, blank, target 1, ..., blank. A path stays, goes on by one
// state, or skips the blank between two targets that differ.
template <class T>
struct Alignment {
  using F = wide_t<T>;
  const AlignParams& p;
  int64_t b;
  int64_t steps, targets, states;  // those that count

  TROPICAL_HD Alignment(const AlignParams& params, int64_t sequence)
      : p(params),
        b(sequence),
        steps(length_of(params.input_lengths, params.input_lengths_are_int64, sequence, params.steps)),
        targets(length_of(params.target_lengths, params.target_lengths_are_int64, sequence, params.targets)),
        states(2 * targets + 1) {}

  TROPICAL_HD int64_t label(int64_t state) const {
    if (state % 2 == 0) return p.blank;
    return integer_at(p.target, p.targets_are_int64, b * p.target.stride[0] + state / 2 * p.target.stride[1]);
  }
  // Targets on a device are not inspected beforehand.
  TROPICAL_HD bool is_class(int64_t target) const { return target >= 0 && target < p.classes && target != p.blank; }
  TROPICAL_HD F score(int64_t t, int64_t label) const {
    const int64_t at = b * p.log_probs.stride[0] + t * p.log_probs.stride[1] + label * p.log_probs.stride[2];
    return widen(static_cast<const T*>(p.log_probs.data)[at]);
  }
  TROPICAL_HD bool may_skip(int64_t state) const {
    return state >= 2 && state % 2 == 1 && label(state) != label(state - 2);
  }

  // The best of the values before `state`, and how many states the path has gone on: the lowest state on ties.
  TROPICAL_HD static F step(const F* before, int64_t state, bool may_skip, uint8_t& advance) {
    F best = before[state];
    advance = 0;
    // From the nearest to the lowest, so that a tie goes to the lower one.
    if (state >= 1 && !takes(best, before[state - 1])) best = before[state - 1], advance = 1;
    if (may_skip && !takes(best, before[state - 2])) best = before[state - 2], advance = 2;
    return best;
  }
  // One more frame. What cannot be reached, or only by -inf, stays so whatever comes, NaN and +inf included: a path
  // that is traced back never leaves the states that have been written.
  TROPICAL_HD static F extended(F best, F score) { return best == lowest<F>() ? best : best + score; }
  // The better of the two states that a path may end in, the lower on a tie; false where no path ends.
  TROPICAL_HD bool end(const F* last, int64_t& state) const {
    state = states - 1;
    if (state > 0 && !takes(last[state], last[state - 1])) --state;
    return last[state] != lowest<F>();
  }

  // Where paths may be at step t, given that they start in state 0 or 1 and end in one of the last two.
  TROPICAL_HD int64_t first_state(int64_t t) const {
    const int64_t s = states - 2 * (steps - t);
    return s > 0 ? s : 0;
  }
  TROPICAL_HD int64_t end_state(int64_t t) const {
    const int64_t s = 2 * t + 2;
    return s < states ? s : states;
  }

  // One frame of the result; without a label nothing is scored.
  TROPICAL_HD void set(int64_t t, int64_t label, F score) const {
    set_integer(p.labels, p.labels_are_int64, b * p.labels.stride[0] + t * p.labels.stride[1], label);
    static_cast<T*>(p.scores.data)[b * p.scores.stride[0] + t * p.scores.stride[1]] = canonical(narrow<T>(score));
  }
};

}  // namespace tropical
