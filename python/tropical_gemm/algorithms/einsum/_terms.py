"""What is contracted: the labels of every operand and of the result."""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

Label = Hashable


class Terms(NamedTuple):
    inputs: tuple[tuple[Label, ...], ...]
    output: tuple[Label, ...]

    def text(self, which: int | None = None) -> str:
        """A term as its user wrote it: of an operand, or of the result."""
        term = self.output if which is None else self.inputs[which]
        return "".join(term) if all(isinstance(x, str) and len(x) == 1 for x in term) else repr(list(term))  # type: ignore[arg-type]


def of_equation(equation: str, ranks: Sequence[int]) -> Terms:
    """From an equation such as ``"ij,jk->ik"``, for operands of these numbers of axes."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"equation {equation!r} has {len(terms)} terms for {len(ranks)} operands")
    for symbol in text.replace("...", "").replace("->", "", 1).replace(",", ""):
        if not (symbol.isalpha() or ord(symbol) > 127):
            raise ValueError(f"equation {equation!r} holds {symbol!r}, expected letters, ',', '...' and '->'")
    inputs = tuple(_expanded(term, rank) for term, rank in zip(terms, ranks, strict=True))
    if not arrow:
        return Terms(inputs, _implied(inputs, sorted))
    most = max([0, *(sum(_is_dot(x) for x in term) for term in inputs)])
    return Terms(inputs, _expanded(right, len(right.replace("...", "")) + (most if "..." in right else 0)))


def of_lists(arguments: Sequence[Any]) -> tuple[Terms, list[Any]]:
    """From ``a, [labels], b, [labels], ..., [labels of the result]``."""
    pairs = len(arguments) // 2
    operands, lists = list(arguments[: 2 * pairs : 2]), list(arguments[1 : 2 * pairs : 2])
    if pairs == 0:
        raise ValueError("einsum needs an equation and operands, or operands each followed by its labels")
    for place, labels in enumerate([*lists, *arguments[2 * pairs :]]):
        if not isinstance(labels, (list, tuple)):
            raise TypeError(
                f"the labels of operand {place} are of type {type(labels).__name__}, expected a list"
            )
        for label in labels:
            if not isinstance(label, Hashable):
                raise TypeError(f"the labels of operand {place} hold {label!r}, expected what can be hashed")
    inputs = tuple(tuple(labels) for labels in lists)
    if len(arguments) % 2:
        return Terms(inputs, tuple(arguments[-1])), operands
    return Terms(inputs, _implied(inputs, _in_order)), operands


def sizes_of(terms: Terms, shapes: Sequence[tuple[int, ...]]) -> dict[Label, int]:
    """The size of every label, after everything that terms and shapes have to satisfy."""
    sizes: dict[Label, int] = {}
    first: dict[Label, int] = {}
    for which, (term, shape) in enumerate(zip(terms.inputs, shapes, strict=True)):
        if len(term) != len(shape):
            raise ValueError(
                f"operand {which} has shape {shape}, but its term {terms.text(which)} has {len(term)} labels"
            )
        for label, size in zip(term, shape, strict=True):
            if sizes.setdefault(label, size) != size:
                raise ValueError(
                    f"label {label!r} has size {sizes[label]} in operand {first[label]} "
                    f"and {size} in operand {which}"
                )
            first.setdefault(label, which)
    for label, times in Counter(terms.output).items():
        if label not in sizes:
            raise ValueError(f"label {label!r} of the result is in no operand")
        if times > 1:
            raise ValueError(f"label {label!r} is {times} times in the result {terms.text()}")
    return sizes


def _expanded(term: str, rank: int) -> tuple[Label, ...]:
    """The labels of a term; those of an ellipsis are counted from its right end."""
    before, dots, after = term.partition("...")
    if not dots:
        return tuple(term)
    hidden = rank - len(before) - len(after)
    if hidden < 0:
        raise ValueError(f"term {term!r} has more labels than its operand axes, {rank}")
    return (*before, *(("...", i) for i in range(hidden, 0, -1)), *after)


def _is_dot(label: Label) -> bool:
    return isinstance(label, tuple) and label[:1] == ("...",)


def _implied(inputs: tuple[tuple[Label, ...], ...], order: Any) -> tuple[Label, ...]:
    """The result that is not written: what an ellipsis stands for, then the labels that occur once."""
    times = Counter(label for term in inputs for label in term)
    dots = sorted((x for x in times if _is_dot(x)), reverse=True)  # type: ignore[type-var]
    return (*dots, *order([x for x, n in times.items() if n == 1 and not _is_dot(x)]))


def _in_order(labels: list[Label]) -> list[Label]:
    try:
        return sorted(labels)  # type: ignore[type-var]
    except TypeError:
        return labels
