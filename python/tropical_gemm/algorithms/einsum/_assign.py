"""One best index for every label, traced back from the result through the tensors of a contraction."""

from typing import Any

from ._plan import Plan, Product
from ._tensors import Algebra, diagonal, permuted
from ._terms import Label


def assignment_of(plan: Plan, tensors: list[Any], algebra: Algebra) -> dict[Label, int]:
    """The lowest of the best indices, step by step from the last, by the steps' own products."""
    found: dict[Label, int] = {}
    for step in reversed(plan.steps):
        if not step.summed:
            continue
        count = plan.elements(step.summed)
        if isinstance(step, Product):
            a = _open(tensors[step.a], step.a_labels, step.summed, found).reshape((1, count))
            b = _open(tensors[step.b], step.b_labels, step.summed, found).reshape((count, 1))
            index = algebra.taken(a, b)
        else:
            x, labels = diagonal(tensors[step.x], step.labels)
            index = algebra.taken(_open(x, labels, step.summed, found).reshape((1, count)))
        for label in reversed(step.summed):
            index, found[label] = divmod(index, plan.sizes[label])
    return {label: index for label, index in found.items() if label not in plan.sliced}


def _open(x: Any, labels: tuple[Label, ...], summed: tuple[Label, ...], found: dict[Label, int]) -> Any:
    """``x`` at the indices that are known, with its axes in the order of ``summed``."""
    at = tuple(found.get(y, 0) if y not in summed else slice(None) for y in labels)
    left = [y for y in labels if y in summed]
    return permuted(x[at], tuple(left.index(y) for y in summed))
