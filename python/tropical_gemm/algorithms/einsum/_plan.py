"""In which order operands are contracted, and what each step does with their axes."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ._layout import Layout, layout
from ._path import find_path
from ._terms import Label, Terms


@dataclass(frozen=True)
class Reduce:
    """Operand ``x`` on the diagonal of its repeated labels, summed over those that nothing else has."""

    x: int
    labels: tuple[Label, ...]
    kept: tuple[Label, ...]
    summed: tuple[Label, ...]


@dataclass(frozen=True)
class Product:
    """A batched matrix product: operands, their labels, those that are summed, what becomes of the axes."""

    a: int
    b: int
    a_labels: tuple[Label, ...]
    b_labels: tuple[Label, ...]
    summed: tuple[Label, ...]
    layout: Layout


Step = Reduce | Product


@dataclass
class Plan:
    """Tensors are numbered: the operands first, then the result of each step."""

    terms: Terms
    sizes: dict[Label, int]
    steps: list[Step] = field(default_factory=list)
    labels: list[tuple[Label, ...]] = field(default_factory=list)
    sliced: tuple[Label, ...] = ()

    @property
    def largest(self) -> int:
        """Elements of the largest tensor that a step makes."""
        return max([1, *(self.elements(labels) for labels in self.labels[len(self.terms.inputs) :])])

    def elements(self, labels: Sequence[Label]) -> int:
        return math.prod([self.sizes[x] for x in labels])


def make_plan(terms: Terms, sizes: dict[Label, int], optimize: Any, limit: int | None) -> Plan:
    """``limit``: the most elements that a tensor in between may have."""
    path, sliced = find_path(terms, sizes, optimize)
    for label in sliced:
        if label not in sizes or label in terms.output:
            raise ValueError(f"optimize slices {label!r}, expected labels that are summed")
    plan = _follow(terms, {**sizes, **dict.fromkeys(sliced, 1)}, path)
    if limit is not None and plan.largest > limit:
        sliced = (*sliced, *_slices(plan, limit))
        plan = _follow(terms, {**sizes, **dict.fromkeys(sliced, 1)}, path)
    plan.sliced = tuple(sliced)
    return plan


def _slices(plan: Plan, limit: int) -> list[Label]:
    """Labels to slice until no tensor is larger: each time the one that most of the too large ones have."""
    made = plan.labels[len(plan.terms.inputs) :]
    large = [(set(labels), plan.elements(labels)) for labels in made if plan.elements(labels) > limit]
    output = set(plan.terms.output)
    sliced: list[Label] = []
    while large:
        biggest = max(size for _, size in large)
        worst = next(labels for labels, size in large if size == biggest)
        choices = [x for x in plan.sizes if x in worst and plan.sizes[x] > 1 and x not in (*output, *sliced)]
        if not choices:
            raise ValueError(
                f"memory_limit allows {limit} elements, but what leads to the result takes {biggest}"
            )
        times = Counter(x for labels, _ in large for x in labels)
        label = max(choices, key=lambda x: (times[x], plan.sizes[x]))
        sliced.append(label)
        large = [
            (labels, left)
            for labels, size in large
            if (left := size // plan.sizes[label] if label in labels else size) > limit
        ]
    return sliced


def _follow(terms: Terms, sizes: dict[Label, int], path: list[tuple[int, ...]]) -> Plan:
    plan = Plan(terms, sizes, labels=list(terms.inputs))
    alive = list(range(len(terms.inputs)))
    # In how many of the tensors that are alive, and in the result, a label is.
    times = Counter(x for term in (*terms.inputs, terms.output) for x in set(term))

    def add(step: Step, labels: tuple[Label, ...]) -> int:
        plan.steps.append(step)
        plan.labels.append(labels)
        times.update(labels)
        return len(plan.labels) - 1

    for place, x in enumerate(alive):
        labels = plan.labels[x]
        once = tuple(dict.fromkeys(labels))
        kept = tuple(label for label in once if times[label] > 1)
        if kept != labels:
            times.subtract(once)
            summed = tuple(label for label in once if label not in kept)
            alive[place] = add(Reduce(x, labels, kept, summed), kept)

    for positions in path:
        if not all(0 <= p < len(alive) for p in positions) or len(set(positions)) != len(positions):
            raise ValueError(f"optimize holds {positions}, expected positions among {len(alive)} operands")
        taken = [alive[p] for p in positions]
        for p in sorted(positions, reverse=True):
            del alive[p]
        while len(taken) > 1:
            a, b = taken[:2]
            times.subtract(plan.labels[a])
            times.subtract(plan.labels[b])
            step = _product(plan, a, b, times)
            taken[:2] = [add(step, step.layout.labels)]
        alive += taken
    if len(alive) != 1:
        raise ValueError(f"optimize leaves {len(alive)} operands, expected a path that contracts all of them")
    return plan


def _product(plan: Plan, a: int, b: int, times: Counter[Label]) -> Product:
    la, lb = plan.labels[a], plan.labels[b]
    summed = tuple(x for x in la if x in lb and times[x] == 0)
    return Product(a, b, la, lb, summed, layout(la, lb, summed, plan.sizes))
