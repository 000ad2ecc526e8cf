"""Contraction of tensor networks over a semiring."""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import common_kind
from ..._count import CountResult
from ..checks import shape_of
from ._assign import assignment_of
from ._out import check_out, written
from ._plan import Plan, Product, Reduce, make_plan
from ._ranges import widen
from ._tensors import Algebra, Counting, diagonal, is_compiling, permuted
from ._terms import Label, Terms, of_equation, of_lists, sizes_of

_ITEM_BYTES = 8  # of the elements that a memory limit is kept for where they are not known


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
        The most bytes that a tensor in between (with its counts) may take: labels are sliced, one index after
        the other, until all of them do. Slices of a tree are taken too.
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
    Every step is one batched :func:`tropical_gemm.matmul`, of operands whose axes are brought together. Sums
    of floats are added in the order of the path; integer-valued floats are exact. Integers are exact or
    refused: the host looks at their magnitudes, and where a sum might leave the dtype they are contracted in
    int64. The result may be a view of an operand where there is nothing to do.

    Source: J.-G. Liu, L. Wang, P. Zhang, Phys. Rev. Lett. 126, 090506 (2021).

    Raises
    ------
    TypeError, ValueError
        As :func:`tropical_gemm.matmul` does, and for equations, labels and sizes that do not fit together.
    OverflowError
        For integers whose result does not fit the dtype, or whose magnitudes may not fit int64 on the way.
    RuntimeError
        For ``out`` where a gradient is wanted.
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
        arrays = [_array(x) for x in operands]
        terms = of_equation(equation, [_rank(x, i) for i, x in enumerate(arrays)])
    else:
        terms, arrays = of_lists([equation, *operands])
        arrays = [_array(x) for x in arrays]
    shapes = [_shape(x, i) for i, x in enumerate(arrays)]
    expression = ContractExpression(
        terms, shapes, semiring, optimize, memory_limit, _item_bytes(arrays, semiring)
    )
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
        sized = [_sizes(s, i) for i, s in enumerate(shapes)]
        terms = of_equation(equation, [len(s) for s in sized])
    else:
        terms, given = of_lists([equation, *shapes])
        sized = [_sizes(s, i) for i, s in enumerate(given)]
    return ContractExpression(terms, sized, semiring, optimize, memory_limit, _ITEM_BYTES)


class ContractExpression:
    """A contraction of operands of given shapes; see :func:`contract_expression`."""

    def __init__(
        self,
        terms: Terms,
        shapes: Sequence[tuple[int, ...]],
        semiring: str,
        optimize: Any,
        memory_limit: int | None,
        item_bytes: int,
    ) -> None:
        self._terms, self._shapes = terms, list(shapes)
        self._algebra, self._values = algebras(semiring)
        limit = None
        if memory_limit is not None:
            if isinstance(memory_limit, bool) or not isinstance(memory_limit, (int, np.integer)):
                came = type(memory_limit).__name__
                raise TypeError(f"memory_limit is of type {came}, expected None or a number of bytes")
            if memory_limit < item_bytes:
                least = f"at least the {item_bytes} bytes of an element"
                raise ValueError(f"memory_limit is {memory_limit}, expected None or {least}")
            limit = int(memory_limit) // item_bytes
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
        if out is not None:
            check_out(out, arrays[0], tuple(self._sizes[x] for x in self._terms.output), list(operands))
        widened = widen(arrays, self._algebra) if self._algebra is self._values else None
        arrays = arrays if widened is None else widened.arrays
        best = _Best(self._algebra, self._values)
        for fixed in self._slices():
            parts = [_sliced(x, t, fixed) for x, t in zip(arrays, self._terms.inputs, strict=True)]
            tensors = run(self._plan, parts, self._algebra, keep=return_assignment)
            if best.add(tensors[-1], return_assignment):
                values = [x[0] if isinstance(x, tuple) else x for x in tensors]
                best.assignment = {**fixed, **assignment_of(self._plan, values, self._values)}
        value = self._algebra.each(self._ordered, best.value)
        if widened is not None:
            value = widened.narrowed(value)
        if out is not None:
            value = written(out, value)
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
                if len(x) != 2:
                    raise ValueError(
                        f"operands[{i}] is a tuple of {len(x)}, expected a pair (values, counts)"
                    )
                named[f"operands[{i}][1]"] = x[1]
        read = named
        if not is_compiling(named["operands[0]"]):
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
        arrays = [read[f"operands[{i}]"] for i in range(len(operands))]
        pairs = [(x, read.get(f"operands[{i}][1]")) for i, x in enumerate(arrays)]
        self._algebra.check(first, pairs)
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
    if not isinstance(semiring, str):
        raise TypeError(f"semiring is of type {type(semiring).__name__}, expected a str such as 'max_plus'")
    if semiring.lower().replace("-", "_").startswith("count_"):
        return Counting(semiring[len("count_") :]), Algebra(semiring[len("count_") :])
    algebra = Algebra(semiring)
    return algebra, algebra


def run(plan: Plan, operands: list[Any], algebra: Algebra, keep: bool) -> list[Any]:
    """All tensors of the plan, the operands first; each is given up after its one use unless kept."""
    tensors = list(operands)
    for step in plan.steps:
        if isinstance(step, Product):
            tensors.append(algebra.product(step, tensors[step.a], tensors[step.b]))
            used: tuple[int, ...] = (step.a, step.b)
        else:
            tensors.append(_reduced(plan, step, tensors[step.x], algebra))
            used = (step.x,)
        if not keep:
            for x in used:
                tensors[x] = None
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


def _array(x: Any) -> Any:
    """NumPy's scalars as arrays: results without labels are such, and may be operands."""
    return np.asarray(x) if isinstance(x, np.generic) else x


def _item_bytes(operands: list[Any], semiring: Any) -> int:
    """Of an element of a tensor in between, with its count."""
    first = operands[0][0] if isinstance(operands[0], tuple) and operands[0] else operands[0]
    item = getattr(getattr(first, "dtype", None), "itemsize", _ITEM_BYTES)
    return int(item) + (8 if isinstance(semiring, str) and semiring.lower().startswith("count") else 0)


def _sizes(shape: Any, which: int) -> tuple[int, ...]:
    if isinstance(shape, (list, tuple)) and all(hasattr(n, "__index__") for n in shape):
        sizes = tuple(int(n) for n in shape)
        if all(n >= 0 for n in sizes):
            return sizes
    raise TypeError(f"the shape of operand {which} is {shape!r}, expected a tuple of sizes")


def _rank(x: Any, which: int) -> int:
    return len(_shape(x, which))


def _shape(x: Any, which: int) -> tuple[int, ...]:
    if isinstance(x, tuple) and len(x) == 2:
        x = x[0]
    return shape_of(x, f"operands[{which}]")


@functools.lru_cache(maxsize=256)
def _cached_plan(
    terms: Terms, sizes: tuple[tuple[Label, int], ...], optimize: Any, limit: int | None
) -> Plan:
    return make_plan(terms, dict(sizes), optimize, limit)
