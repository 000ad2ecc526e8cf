"""Reading a strip of handwritten digits whose borders are unknown, by a hidden Markov model (Viterbi).

Each digit is a chain of states, one for each column of its 8 x 8 image, and a state for the gaps between
digits. A column of the strip is scored under each state by a Gaussian that was fitted to the training
images; the most likely sequence of states reads the digits and finds their borders. With the digits given,
forced alignment finds the borders alone.
"""

from __future__ import annotations

import argparse

import numpy as np
import tropical_gemm as tg
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

DIGITS, COLUMNS = 10, 8
GAP = DIGITS * COLUMNS  # the number of its state
STATES = GAP + 1
SPREAD = 1.0  # least standard deviation of a pixel, whose values go from 0 to 16


def fit(images: np.ndarray, digits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of a column's pixels, (STATES, 8): the digits', then the gap's."""
    mean, spread = np.zeros((STATES, COLUMNS)), np.full((STATES, COLUMNS), SPREAD)
    for digit in range(DIGITS):
        columns = images[digits == digit].swapaxes(1, 2)  # (image, column, pixel)
        own = slice(digit * COLUMNS, (digit + 1) * COLUMNS)
        mean[own], spread[own] = columns.mean(0), np.maximum(columns.std(0), SPREAD)
    return mean, spread


def transitions() -> np.ndarray:
    """Logarithms of the probabilities of going from state to state."""
    p = np.zeros((STATES, STATES))
    first = np.arange(DIGITS) * COLUMNS
    for column in range(COLUMNS - 1):
        p[first + column, first + column + 1] = 1
    p[first + COLUMNS - 1, GAP] = 0.75  # a gap, or the next digit at once
    p[np.ix_(first + COLUMNS - 1, first)] = 0.25 / DIGITS
    p[GAP, GAP] = 0.5
    p[GAP, first] = 0.5 / DIGITS
    with np.errstate(divide="ignore"):
        return np.log(p)


def write_strip(rng, images: np.ndarray, digits: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """``(columns, state of each column)`` of random images side by side, with gaps of up to three columns."""
    columns, states = [], []
    for image in rng.integers(len(images), size=count):
        gap = rng.integers(4)
        columns += [np.zeros((gap, COLUMNS)), images[image].T]
        states += [GAP] * gap + list(digits[image] * COLUMNS + np.arange(COLUMNS))
    return np.concatenate(columns), np.array(states)


def log_likelihood(strips: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """``(..., T, STATES)`` for columns ``(..., T, 8)``, up to a constant."""
    z = (strips[..., None, :] - mean) / spread
    return -(0.5 * z**2 + np.log(spread)).sum(-1)


def read(states: np.ndarray) -> list[int]:
    """The digits whose chains a path runs through."""
    return [int(s) // COLUMNS for s in states if 0 <= s < GAP and s % COLUMNS == 0]


def share_right(got: np.ndarray, wanted: list[np.ndarray]) -> float:
    return float(np.concatenate([g[: len(w)] == w for g, w in zip(got, wanted, strict=True)]).mean())


def draw(strip: np.ndarray, path: np.ndarray, wanted: list[int], output: str) -> None:
    figure = Figure(figsize=(12, 2.2), layout="constrained")
    axes = figure.subplots()
    axes.imshow(strip.T, cmap="gray_r", aspect="equal")
    starts = [t for t, s in enumerate(path) if 0 <= s < GAP and s % COLUMNS == 0]
    for t, digit, right in zip(starts, read(path), wanted, strict=False):
        axes.axvspan(t - 0.5, t + COLUMNS - 0.5, color=f"C{digit}", alpha=0.25, linewidth=0)
        axes.text(
            t + COLUMNS / 2 - 0.5, -1.6, str(digit), ha="center", size=12,
            color="black" if digit == right else "red",
        )  # fmt: skip
    axes.set(xticks=[], yticks=[], title="what the most likely path reads\n")
    figure.savefig(output, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strips", type=int, default=200)
    parser.add_argument("--digits", type=int, default=15, help="in each strip")
    parser.add_argument("--output", default="connected_digits.png")
    arguments = parser.parse_args()

    data = load_digits()
    train, test, train_digits, test_digits = train_test_split(
        data.images, data.target, test_size=0.5, random_state=0
    )
    mean, spread = fit(train, train_digits)
    rng = np.random.default_rng(0)
    made = [write_strip(rng, test, test_digits, arguments.digits) for _ in range(arguments.strips)]
    lengths = np.array([len(columns) for columns, _ in made])
    strips = np.zeros((len(made), lengths.max(), COLUMNS))
    for row, (columns, _) in enumerate(made):
        strips[row, : len(columns)] = columns

    emission = log_likelihood(strips, mean, spread)
    start = np.full(STATES, -np.inf)
    start[[GAP, *range(0, GAP, COLUMNS)]] = 0
    end = np.full(STATES, -np.inf)
    end[[GAP, *range(COLUMNS - 1, GAP, COLUMNS)]] = 0
    paths, scores = tg.viterbi(emission, transitions(), start, end, lengths=lengths)
    if not np.isfinite(scores).all():
        raise SystemExit("a strip has no path")

    right = sum(read(path) == read(states) for path, (_, states) in zip(paths, made, strict=True))
    columns_right = share_right(paths // COLUMNS, [states // COLUMNS for _, states in made])
    print(
        f"{len(made)} strips of {arguments.digits} digits, up to {emission.shape[1]} columns, {STATES} states"
    )
    print(f"strips read without any fault: {right} of {len(made)}")
    print(f"columns given to the right digit or gap: {columns_right:.1%}")

    # The digits known, their borders not: every column is a state of the known chain, and gaps are blanks.
    targets = np.array([[s for s in states if s != GAP] for _, states in made])
    borders, _ = tg.forced_align(emission, targets, lengths, blank=GAP)
    found = share_right(borders, [states for _, states in made])
    print(f"columns aligned to the right state where the digits are given: {found:.1%}")

    columns, states = made[0]
    draw(columns, paths[0][: len(states)], read(states), arguments.output)
    print(f"picture: {arguments.output}")


if __name__ == "__main__":
    main()
