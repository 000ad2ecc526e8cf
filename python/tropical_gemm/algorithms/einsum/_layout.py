"""How the axes of two tensors become those of a batched matrix product, with as few copies as possible."""

import itertools
import math
from typing import NamedTuple

from ._terms import Label

Labels = tuple[Label, ...]

# Axes of a batch that a product takes, and rows below which one with many members is slower than a copy.
_MOST_AXES = 24
_FEW_ROWS = 32


class Operand(NamedTuple):
    """Axes in the order that the product wants, and the shape in which neighbours among them are one."""

    order: tuple[int, ...]
    shape: tuple[int, ...]
    copies: bool  # whether that shape takes a copy of a row-major tensor


class Layout(NamedTuple):
    a: Operand
    b: Operand
    shape: tuple[int, ...]
    labels: Labels  # of the result
    turned: bool  # the second operand stands first


def layout(la: Labels, lb: Labels, summed: Labels, sizes: dict[Label, int]) -> Layout:
    """The product of two row-major tensors, of which the larger one is used as it lies where that can be.

    Its axes in their order are members of a batch or, the longest of its own, rows of the matrices; the
    smaller one is put in that order, with an axis of size 1 for what it does not have.
    """

    def size(labels: Labels) -> int:
        return math.prod([sizes[x] for x in labels])

    if size(lb) > size(la):
        made = layout(lb, la, tuple(x for x in lb if x in summed), sizes)
        return Layout(made.b, made.a, made.shape, made.labels, True)
    runs = [
        (kind, tuple(run))
        for kind, run in itertools.groupby(
            (x for x in la if sizes[x] != 1 or x in lb),
            lambda x: "k" if x in summed else "b" if x in lb else "m",
        )
    ]
    cols = tuple(x for x in lb if x not in la)
    ones = tuple(x for x in la if sizes[x] == 1 and x not in lb)
    rows = max([(), *(run for kind, run in runs if kind == "m")], key=size)
    batch = [run for kind, run in runs if kind != "k" and run != rows]
    alone = sum(kind == "k" for kind, _ in runs) <= 1 and len(batch) <= _MOST_AXES
    if not alone or (batch and rows and size(rows) < _FEW_ROWS <= size(la) // max(size(summed), 1)):
        shared = tuple(x for x in la if x in lb and x not in summed)
        rows = tuple(x for x in la if x not in lb and x not in ones)
        batch = [shared] if shared else []
    own = {x for run in batch for x in run if x not in lb}
    return Layout(
        _operand(la, [(*ones, *batch[0]) if batch else ones, *batch[1:], rows, summed], sizes),
        _operand(lb, [*((() if own & set(run) else run) for run in batch or [()]), summed, cols], sizes),
        tuple(sizes[x] for run in (ones, *batch, rows, cols) for x in run),
        (*ones, *itertools.chain(*batch), *rows, *cols),
        False,
    )


def _operand(labels: Labels, groups: list[Labels], sizes: dict[Label, int]) -> Operand:
    order = tuple(labels.index(x) for group in groups for x in group)
    long = [x for x in labels if sizes[x] != 1]
    after = dict(itertools.pairwise(long))
    copies = any(
        after.get(x) != y
        for group in groups
        for x, y in itertools.pairwise([x for x in group if sizes[x] != 1])
    )
    return Operand(order, tuple(math.prod([sizes[x] for x in group]) for group in groups), copies)
