"""In which order operands are contracted, and what each step does with their axes."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

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
    """A batched matrix product; labels of the result are ``batch``, ``rows``, ``cols``."""

    a: int
    b: int
    a_labels: tuple[Label, ...]
    b_labels: tuple[Label, ...]
    batch: tuple[Label, ...]
    rows: tuple[Label, ...]
    summed: tuple[Label, ...]
    cols: tuple[Label, ...]
    # The axes of each operand in the order (batch, rows, summed) and (batch, summed, cols), and their sizes.
    a_order: tuple[int, ...] = ()
    b_order: tuple[int, ...] = ()
    a_shape: tuple[int, ...] = ()
    b_shape: tuple[int, ...] = ()
    c_shape: tuple[int, ...] = ()

    @property
    def labels(self) -> tuple[Label, ...]:
        return (*self.batch, *self.rows, *self.cols)


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
        return max((self.elements(labels) for labels in self.labels[len(self.terms.inputs) :]), default=1)

    def elements(self, labels: Sequence[Label]) -> int:
        return math.prod(self.sizes[x] for x in labels)


def make_plan(terms: Terms, sizes: dict[Label, int], optimize: Any, limit: int | None) -> Plan:
    """``limit``: the most elements that a tensor in between may have."""
    path = find_path(terms, sizes, optimize)
    plan = _follow(terms, sizes, path)
    sliced: list[Label] = []
    while limit is not None and plan.largest > limit:
        made = plan.labels[len(terms.inputs) :]
        biggest = max(made, key=plan.elements)
        choices = [x for x in biggest if plan.sizes[x] > 1 and x not in terms.output]
        if not choices:
            raise ValueError(
                f"memory_limit allows {limit} elements, but what leads to the result takes {plan.largest}"
            )
        plans = {x: _follow(terms, {**plan.sizes, x: 1}, path) for x in choices}
        sliced.append(min(choices, key=lambda x: plans[x].largest))
        plan = plans[sliced[-1]]
    plan.sliced = tuple(sliced)
    return plan


def find_path(terms: Terms, sizes: dict[Label, int], optimize: Any) -> list[tuple[int, ...]]:
    """Pairs of positions, as opt_einsum has them: both are taken out, the result is put at the end."""
    count = len(terms.inputs)
    if hasattr(optimize, "get_path"):  # a tree of cotengra
        return [tuple(pair) for pair in optimize.get_path()]
    if isinstance(optimize, (list, tuple)):
        return [tuple(pair) for pair in optimize]
    if count <= 2 or optimize is False:
        # From left to right: what came out of the step before stands last, the next operand first.
        steps: list[tuple[int, ...]] = [(0, 1)] * min(count - 1, 1)
        return steps + [(last, 0) for last in range(count - 2, 0, -1)]
    try:
        import opt_einsum  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(
            "einsum of more than two operands looks for an order with opt_einsum: "
            "pip install 'tropical-gemm-cpp[einsum]', or pass the path as optimize="
        ) from None
    symbols = {label: opt_einsum.get_symbol(i) for i, label in enumerate(sizes)}

    def written(term: Sequence[Label]) -> str:
        return "".join(symbols[x] for x in term)

    equation = ",".join(map(written, terms.inputs)) + "->" + written(terms.output)
    shapes = [tuple(sizes[x] for x in term) for term in terms.inputs]
    path, _ = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=optimize)
    return [tuple(pair) for pair in path]


def _follow(terms: Terms, sizes: dict[Label, int], path: list[tuple[int, ...]]) -> Plan:
    plan = Plan(terms, sizes, labels=list(terms.inputs))
    alive = list(range(len(terms.inputs)))

    def needed(but: Sequence[int]) -> set[Label]:
        others = itertools.chain.from_iterable(plan.labels[x] for x in alive if x not in but)
        return {*terms.output, *others}

    def add(step: Step, labels: tuple[Label, ...]) -> int:
        plan.steps.append(step)
        plan.labels.append(labels)
        return len(plan.labels) - 1

    for place, x in enumerate(alive):
        labels, wanted = plan.labels[x], needed([x])
        once = tuple(dict.fromkeys(labels))
        kept = tuple(label for label in once if label in wanted)
        if kept != labels:
            summed = tuple(label for label in once if label not in wanted)
            alive[place] = add(Reduce(x, labels, kept, summed), kept)

    for positions in path:
        if not all(0 <= p < len(alive) for p in positions) or len(set(positions)) != len(positions):
            raise ValueError(f"optimize holds {positions}, expected positions among {len(alive)} operands")
        taken = [alive[p] for p in positions]
        for p in sorted(positions, reverse=True):
            del alive[p]
        while len(taken) > 1:
            a, b = taken[:2]
            step = _product(plan, a, b, needed([]) | {x for t in taken[2:] for x in plan.labels[t]})
            taken[:2] = [add(step, step.labels)]
        alive += taken
    if len(alive) != 1:
        raise ValueError(f"optimize leaves {len(alive)} operands, expected a path that contracts all of them")
    return plan


def _product(plan: Plan, a: int, b: int, wanted: set[Label]) -> Product:
    la, lb = plan.labels[a], plan.labels[b]
    both = [x for x in la if x in lb]
    batch, summed = tuple(x for x in both if x in wanted), tuple(x for x in both if x not in wanted)
    rows, cols = tuple(x for x in la if x not in lb), tuple(x for x in lb if x not in la)
    size = plan.elements
    return Product(
        a, b, la, lb, batch, rows, summed, cols,
        tuple(la.index(x) for x in (*batch, *rows, *summed)),
        tuple(lb.index(x) for x in (*batch, *summed, *cols)),
        (size(batch), size(rows), size(summed)),
        (size(batch), size(summed), size(cols)),
        tuple(plan.sizes[x] for x in (*batch, *rows, *cols)),
    )  # fmt: skip
