"""The order of contraction, from everything that ``optimize`` may be."""

import itertools
from collections.abc import Sequence
from typing import Any

from ._terms import Label, Terms

Path = list[tuple[int, ...]]


def find_path(terms: Terms, sizes: dict[Label, int], optimize: Any) -> tuple[Path, tuple[Label, ...]]:
    """Positions, as opt_einsum has them (those are taken out, the result is put last); labels to slice."""
    count = len(terms.inputs)
    if hasattr(optimize, "get_path"):  # a tree of cotengra
        # Its labels may be names of its own.
        theirs = itertools.chain(*getattr(optimize, "inputs", terms.inputs))
        ours = dict(zip(theirs, itertools.chain(*terms.inputs), strict=True))
        sliced = tuple(ours[x] for x in getattr(optimize, "sliced_inds", ()))
        return _checked(optimize.get_path()), sliced
    if isinstance(optimize, (list, tuple)):
        return _checked(optimize), ()
    if not (optimize is None or isinstance(optimize, (bool, str)) or callable(optimize)):
        raise TypeError(
            f"optimize is of type {type(optimize).__name__}, expected a name or an optimizer of opt_einsum, "
            "a path, a tree of cotengra, or False"
        )
    if count <= 2 or optimize is False:
        # From left to right: what came out of the step before stands last, the next operand first.
        steps: Path = [(0, 1)] * min(count - 1, 1)
        return steps + [(last, 0) for last in range(count - 2, 0, -1)], ()
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
    try:
        path, _ = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=optimize)
    except KeyError:
        raise ValueError(f"optimize is {optimize!r}, which opt_einsum does not know") from None
    return [tuple(pair) for pair in path], ()


def _checked(path: Any) -> Path:
    pairs = list(path)
    if pairs[:1] == ["einsum_path"]:  # as numpy.einsum_path gives it
        del pairs[0]
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or not all(
            hasattr(p, "__index__") and not isinstance(p, bool) for p in pair
        ):
            raise TypeError(f"optimize holds {pair!r}, expected tuples of positions of operands")
    return [tuple(int(p) for p in pair) for pair in pairs]
