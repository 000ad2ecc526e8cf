"""The Viterbi recurrence as NumPy formulas: slow, and independent of the library."""

import itertools

import numpy as np
import oracle


def viterbi(emission, transition, initial=None, final=None, length=None):
    """``(path, score)`` of one sequence: emission (T, S), transition (S, S) or (T - 1, S, S)."""
    steps, states = emission.shape
    length = steps if length is None else length
    dtype = np.float64 if emission.dtype == np.float64 else np.float32
    e, a = emission.astype(dtype), transition.astype(dtype)
    path = np.full(steps, -1)
    if length == 0:
        return path, dtype(0)
    each = a.ndim == 3
    taken = np.zeros((length, states), int)
    with np.errstate(invalid="ignore", over="ignore"):
        v = e[0] if initial is None else initial.astype(dtype) + e[0]
        for t in range(1, length):
            candidates = v[:, None] + (a[min(t - 1, len(a) - 1)] if each else a)
            taken[t] = candidates.argmax(axis=0)
            v = candidates.max(axis=0) + e[t]
        v = v if final is None else v + final.astype(dtype)
    score = v.max()
    if score == -np.inf:
        return path, score
    state = int(v.argmax())
    for t in range(length - 1, -1, -1):
        path[t] = state
        state = taken[t, state]
    return path, score


def batched(emission, transition, initial=None, final=None, lengths=None):
    """The same for leading axes, which broadcast."""
    own = {"t": 3 if transition.ndim > 2 else 2}
    leads = [emission.shape[:-2], transition.shape[: -own["t"]]]
    leads += [x.shape[:-1] for x in (initial, final) if x is not None]
    leads += [np.shape(lengths)] if lengths is not None else []
    batch = np.broadcast_shapes(*leads)
    paths = np.empty((*batch, emission.shape[-2]), np.int32)
    scores = np.empty(batch, np.float64 if emission.dtype == np.float64 else np.float32)

    def one(x, axes, at):
        if x is None:
            return None
        x = np.asarray(x)
        return np.broadcast_to(x, (*batch, *x.shape[x.ndim - axes :]))[at]

    for at in np.ndindex(batch):
        paths[at], scores[at] = viterbi(
            one(emission, 2, at),
            one(transition, own["t"], at),
            one(initial, 1, at),
            one(final, 1, at),
            one(lengths, 0, at),
        )
    return paths, oracle.canonical(scores)


def alignment(log_probs, targets, blank=0):
    """``(labels, scores)`` of one sequence, (T, C) and (L,), by the recurrence."""
    dtype = np.float64 if log_probs.dtype == np.float64 else np.float32
    x = log_probs.astype(dtype)
    steps = len(x)
    label = np.full(2 * len(targets) + 1, blank)
    label[1::2] = targets
    skips = np.zeros(len(label), bool)
    skips[3::2] = label[3::2] != label[1:-2:2]
    v = np.full(len(label), -np.inf, dtype)
    came = np.zeros((steps, len(label)), int)
    with np.errstate(invalid="ignore"):
        for t in range(steps):
            if t == 0:
                v[:2] = x[0, label[:2]]
                continue
            before = [np.concatenate([np.full(d, -np.inf, dtype), v])[: len(v)] for d in (2, 1, 0)]
            before[0][~skips] = -np.inf
            candidates = np.stack(before)
            # A skip that is not allowed is no candidate, whatever ties there are.
            order = candidates.argmax(axis=0)
            order[~skips & (order == 0)] = candidates[1:, ~skips & (order == 0)].argmax(axis=0) + 1
            came[t] = 2 - order
            best = candidates.max(axis=0)
            v = np.where(best == -np.inf, best, best + x[t, label])
    ends = v[-2:]
    at = len(v) - len(ends) + int(ends.argmax())
    if steps == 0 or v[at] == -np.inf:
        score = 0 if steps == 0 and len(targets) == 0 else -np.inf
        return np.full(steps, -1), np.full(steps, score).astype(log_probs.dtype)
    path = np.empty(steps, int)
    for t in range(steps - 1, -1, -1):
        path[t] = at
        at -= came[t, at]
    return label[path], log_probs[np.arange(steps), label[path]]


def collapsed(labels, blank=0):
    """The targets that the labels of all steps stand for."""
    return [x for x, _ in itertools.groupby(labels) if x != blank]
