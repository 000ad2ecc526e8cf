"""Contraction of tensor networks over a semiring."""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import common_kind
from ..._count import CountResult
from ._assign import assignment_of
from ._plan import Plan, Product, Reduce, make_plan
from ._tensors import Algebra, Counting, diagonal, permuted
from ._terms import Label, Terms, of_equation, of_lists, sizes_of

_ITEM_BYTES = 8  # of the elements that a memory limit is kept for


class EinsumResult(NamedTuple):
    """What :func:`einsum` returns where an assignment is wanted."""

    value: Any
    assignment: dict[Label, int]


def einsum(
    equation: Any,
    *operands: Any,
    semiring: str,
    optimize: Any = "auto",
    out: Any = None,
    memory_limit: int | None = None,
    return_assignment: bool = False,
) -> Any:
    """Contracts a tensor network: ``add``, over all labels not in the result, of ``mul`` of all operands.

    In max_plus it is the largest sum of one element of every tensor, labels that tensors share being equal:
    the best configuration of a model whose terms are the tensors.

    Parameters
    ----------
    equation, operands
        As for :func:`numpy.einsum`: ``einsum("ij,jk->ik", a, b)``, or every operand followed by the list of
        its labels and the labels of the result at the end, ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.
        Symbols may be any letters (Unicode too), labels in lists anything that can be hashed. A label may
        occur in any number of tensors, and more than once in one (its diagonal); ``...`` stands for axes
        without a name. Without a result, its labels are those that occur once, in order. All operands of
        one library, dtype and device; all sizes of a label are equal.
    semiring
        One of :data:`tropical_gemm.semirings`, whose dtypes hold; or ``"count_max_plus"`` or
        ``"count_min_plus"``, which also count the configurations that reach the value: operands are then
        pairs ``(values, counts)``, or values alone, as for :func:`tropical_gemm.count_matmul`.
    optimize
        The order: a name or an optimizer that ``opt_einsum.contract_path`` takes, a path (a list of pairs of
        positions), a tree of cotengra, or False for left to right.
    out
        An array to write the result to, of its shape and dtype.
    memory_limit
        The most bytes that a tensor in between may take: labels are sliced, one index after the other, until
        all of them do.
    return_assignment
        For a result without labels: return ``EinsumResult(value, assignment)``, one best index for every
        label. Steps are looked at from the last to the first; each takes, among its best, the lowest
        indices of the labels it sums over, in the order of its first operand. Where no configuration is
        better than the semiring's zero, it is any.

    Returns
    -------
    array or EinsumResult
        Of the library and dtype of the operands; a ``CountResult`` of two where configurations are counted.
        Gradients flow through torch tensors.

    Notes
    -----
    Every step is one batched :func:`tropical_gemm.matmul`, of operands whose axes are brought together.
    Sums of floats are added in the order of the path; integers and integer-valued floats are exact.

    Source: J.-G. Liu, L. Wang, P. Zhang, Phys. Rev. Lett. 126, 090506 (2021).

    Raises
    ------
    TypeError, ValueError
        As :func:`tropical_gemm.matmul` does, and for equations, labels and sizes that do not fit together.
    ImportError
        For more than two operands where ``opt_einsum`` is missing and ``optimize`` is no path.

    Examples
    --------
    >>> import numpy as np
    >>> import tropical_gemm as tg
    >>> edge = np.array([[0.0, 0.0], [0.0, -np.inf]])  # not both ends of an edge
    >>> site = np.array([0.0, 1.0])
    >>> tg.einsum("i,j,k,ij,jk->", site, site, site, edge, edge, semiring="max_plus", return_assignment=True)
    EinsumResult(value=np.float64(2.0), assignment={'i': 1, 'j': 0, 'k': 1})
    """
    if isinstance(equation, str):
        arrays = list(operands)
        terms = of_equation(equation, [_rank(x, i) for i, x in enumerate(arrays)])
    else:
        terms, arrays = of_lists([equation, *operands])
    shapes = [_shape(x, i) for i, x in enumerate(arrays)]
    expression = ContractExpression(terms, shapes, semiring, optimize, memory_limit)
    return expression(*arrays, out=out, return_assignment=return_assignment)


def contract_expression(
    equation: Any, *shapes: Any, semiring: str, optimize: Any = "auto", memory_limit: int | None = None
) -> "ContractExpression":
    """A contraction for many operands of the same shapes: the order is looked for once.

    Parameters
    ----------
    equation, shapes
        As for :func:`einsum`, with the shape of every operand in its place. A label that all operands and the
        result share is a batch, such as one of instances of disorder.
    semiring, optimize, memory_limit
        As for :func:`einsum`; the limit is kept for elements of 8 bytes.

    Returns
    -------
    ContractExpression
        To be called with the operands, and with ``out`` or ``return_assignment``.

    Examples
    --------
    >>> import numpy as np
    >>> import tropical_gemm as tg
    >>> chain = tg.contract_expression("ab,bc,cd->ad", (2, 3), (3, 3), (3, 2), semiring="min_plus")
    >>> chain(np.zeros((2, 3)), np.ones((3, 3)), np.ones((3, 2)))
    array([[2., 2.],
           [2., 2.]])
    """
    if isinstance(equation, str):
        terms, sized = of_equation(equation, [len(s) for s in shapes]), list(shapes)
    else:
        terms, sized = of_lists([equation, *shapes])
    return ContractExpression(terms, [tuple(s) for s in sized], semiring, optimize, memory_limit)


class ContractExpression:
    """A contraction of operands of given shapes; see :func:`contract_expression`."""

    def __init__(
        self,
        terms: Terms,
        shapes: Sequence[tuple[int, ...]],
        semiring: str,
        optimize: Any,
        memory_limit: int | None,
    ) -> None:
        self._terms, self._shapes = terms, [tuple(map(int, s)) for s in shapes]
        self._algebra, self._values = algebras(semiring)
        limit = None
        if memory_limit is not None:
            if (
                isinstance(memory_limit, bool)
                or not isinstance(memory_limit, int)
                or memory_limit < _ITEM_BYTES
            ):
                raise ValueError(f"memory_limit is {memory_limit!r}, expected None or a number of bytes")
            limit = memory_limit // _ITEM_BYTES
        self._sizes = sizes_of(terms, self._shapes)
        sized = tuple(self._sizes.items())
        cached = optimize is None or isinstance(optimize, (str, bool))
        self._plan = _cached_plan(terms, sized, optimize, limit) if cached else make_plan(
            terms, self._sizes, optimize, limit
        )  # fmt: skip

    def __call__(self, *operands: Any, out: Any = None, return_assignment: bool = False) -> Any:
        """Contracts the operands; see :func:`einsum`."""
        if len(operands) != len(self._shapes):
            raise ValueError(f"{len(operands)} operands came, expected {len(self._shapes)}")
        arrays = self._checked(operands)
        if return_assignment and self._terms.output:
            raise ValueError(
                f"return_assignment needs a result without labels, this one has {self._terms.text()}"
            )
        best = _Best(self._algebra, self._values)
        for fixed in self._slices():
            parts = [_sliced(x, t, fixed) for x, t in zip(arrays, self._terms.inputs, strict=True)]
            tensors = run(self._plan, parts, self._algebra)
            if best.add(tensors[-1], return_assignment):
                values = [x[0] if isinstance(x, tuple) else x for x in tensors]
                best.assignment = {**fixed, **assignment_of(self._plan, values, self._values)}
        value = self._algebra.each(self._ordered, best.value)
        if out is not None:
            value = _written(out, value)
        else:
            value = self._algebra.each(_scalar, value)
            value = CountResult._make(value) if isinstance(value, tuple) else value
        if not return_assignment:
            return value
        assert best.assignment is not None
        return EinsumResult(value, {label: best.assignment[label] for label in self._sizes})

    def _checked(self, operands: Sequence[Any]) -> list[Any]:
        """Operands of one kind, of the shapes and the dtype that are wanted; pairs where counts are."""
        named: dict[str, Any] = {}
        for i, x in enumerate(operands):
            named[f"operands[{i}]"] = x[0] if isinstance(x, tuple) else x
            if isinstance(x, tuple):
                named[f"operands[{i}][1]"] = x[1]
        kind = common_kind(**named)
        read = {name: kind.operand(x, name) for name, x in named.items()}
        first = read["operands[0]"]
        for i, shape in enumerate(self._shapes):
            x = read[f"operands[{i}]"]
            counts = read.get(f"operands[{i}][1]", x)
            if not tuple(x.shape) == tuple(counts.shape) == shape:
                raise ValueError(
                    f"operands[{i}] has shape {tuple((x if tuple(x.shape) != shape else counts).shape)}, "
                    f"expected {shape}"
                )
            if x.dtype != first.dtype:
                raise TypeError(f"operands[{i}] has dtype {x.dtype}, expected {first.dtype} like operands[0]")
        self._algebra.check(first)
        arrays = [read[f"operands[{i}]"] for i in range(len(operands))]
        pairs = [(x, read.get(f"operands[{i}][1]")) for i, x in enumerate(arrays)]
        return self._algebra.operands(pairs)

    def _slices(self) -> Any:
        sliced = self._plan.sliced
        for indices in itertools.product(*(range(self._sizes[x]) for x in sliced)):
            yield dict(zip(sliced, indices, strict=True))

    def _ordered(self, value: Any) -> Any:
        """The axes of the last step in the order of the result."""
        labels = self._plan.labels[-1]
        return permuted(value, tuple(labels.index(x) for x in self._terms.output))


class _Best:
    """The sum over slices, and the assignment of the first that is the best."""

    def __init__(self, algebra: Algebra, values: Algebra) -> None:
        self.algebra, self.values = algebra, values
        self.value: Any = None
        self.assignment: dict[Label, int] | None = None

    def add(self, value: Any, wanted: bool) -> bool:
        """Whether its assignment is wanted and better than that of the slices before."""
        if self.value is None:
            self.value = value
            return wanted
        both = self.algebra.stacked(self.value, value)
        shape = (value[0] if isinstance(value, tuple) else value).shape
        self.value = self.algebra.each(lambda x: x.reshape(shape), self.algebra.total(both))
        if not wanted:
            return False
        return self.values.taken(both[0] if isinstance(both, tuple) else both) == 1


def algebras(semiring: Any) -> tuple[Algebra, Algebra]:
    """The algebra of a contraction, and that of its values."""
    if isinstance(semiring, str) and semiring.lower().replace("-", "_").startswith("count_"):
        return Counting(semiring[len("count_") :]), Algebra(semiring[len("count_") :])
    return Algebra(semiring), Algebra(semiring)


def run(plan: Plan, operands: list[Any], algebra: Algebra) -> list[Any]:
    """All tensors of the plan, the operands first."""
    tensors = list(operands)
    for step in plan.steps:
        if isinstance(step, Product):
            tensors.append(algebra.product(step, tensors[step.a], tensors[step.b]))
        else:
            tensors.append(_reduced(plan, step, tensors[step.x], algebra))
    return tensors


def _reduced(plan: Plan, step: Reduce, x: Any, algebra: Algebra) -> Any:
    order = (*step.kept, *step.summed)

    def on_diagonal(part: Any) -> Any:
        view, labels = diagonal(part, step.labels)
        return permuted(view, tuple(labels.index(y) for y in order))

    x = algebra.each(on_diagonal, x)
    if not step.summed:
        return x
    kept = tuple(plan.sizes[y] for y in step.kept)
    matrix = (math.prod(kept), plan.elements(step.summed))
    total = algebra.total(algebra.each(lambda part: part.reshape(matrix), x))
    return algebra.each(lambda part: part.reshape(kept), total)


def _scalar(x: Any) -> Any:
    return x[()] if isinstance(x, np.ndarray) and x.ndim == 0 else x


def _sliced(x: Any, term: tuple[Label, ...], fixed: dict[Label, int]) -> Any:
    """``x`` at one index of the sliced labels, which keep an axis of size 1."""
    if not any(label in fixed for label in term):
        return x
    if isinstance(x, tuple):
        return tuple(_sliced(part, term, fixed) for part in x)
    return x[tuple(slice(fixed[y], fixed[y] + 1) if y in fixed else slice(None) for y in term)]


def _rank(x: Any, which: int) -> int:
    return len(_shape(x, which))


def _shape(x: Any, which: int) -> tuple[int, ...]:
    if isinstance(x, tuple) and len(x) == 2:
        x = x[0]
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise TypeError(
            f"operands[{which}] is of type {type(x).__name__}, expected an array; use numpy.asarray"
        )
    return tuple(x.shape)


def _written(out: Any, value: Any) -> Any:
    if isinstance(value, tuple):
        if not isinstance(out, tuple) or len(out) != 2:
            raise TypeError(f"out is of type {type(out).__name__}, expected a pair (values, counts)")
        return CountResult._make(_written(x, y) for x, y in zip(out, value, strict=True))
    if tuple(out.shape) != tuple(value.shape) or out.dtype != value.dtype:
        raise ValueError(
            f"out has shape {tuple(out.shape)} and dtype {out.dtype}, "
            f"expected {tuple(value.shape)} and {value.dtype}"
        )
    if hasattr(out, "copy_"):
        out.copy_(value)
    else:
        out[...] = value
    return out


@functools.lru_cache(maxsize=256)
def _cached_plan(
    terms: Terms, sizes: tuple[tuple[Label, int], ...], optimize: Any, limit: int | None
) -> Plan:
    return make_plan(terms, dict(sizes), optimize, limit)
