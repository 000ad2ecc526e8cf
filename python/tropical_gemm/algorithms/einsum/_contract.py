"""Contraction of tensor networks over a semiring."""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import _core
from ..._arrays import common_kind
from ._assign import assignment_of
from ._plan import Plan, Product, make_plan
from ._tensors import batched, diagonal, dtype_text, namespace, permuted, total
from ._terms import Label, Terms, of_equation, of_lists, sizes_of


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
        One of :data:`tropical_gemm.semirings`, whose dtypes hold.
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
        Of the library and dtype of the operands. Gradients flow through torch tensors.

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
        item_bytes: int = 8,
    ) -> None:
        self._terms, self._shapes = terms, [tuple(map(int, s)) for s in shapes]
        self._semiring = semiring
        limit = None
        if memory_limit is not None:
            if (
                isinstance(memory_limit, bool)
                or not isinstance(memory_limit, int)
                or memory_limit < item_bytes
            ):
                raise ValueError(f"memory_limit is {memory_limit!r}, expected None or a number of bytes")
            limit = memory_limit // item_bytes
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
        kind = common_kind(**{f"operands[{i}]": x for i, x in enumerate(operands)})
        arrays = [kind.operand(x, f"operands[{i}]") for i, x in enumerate(operands)]
        for i, (x, shape) in enumerate(zip(arrays, self._shapes, strict=True)):
            if tuple(x.shape) != shape:
                raise ValueError(f"operands[{i}] has shape {tuple(x.shape)}, expected {shape}")
            if x.dtype != arrays[0].dtype:
                raise TypeError(
                    f"operands[{i}] has dtype {x.dtype}, expected {arrays[0].dtype} like operands[0]"
                )
        _core.semiring_constants(self._semiring, dtype_text(arrays[0]))  # or it says what is wrong
        if return_assignment and self._terms.output:
            raise ValueError(
                f"return_assignment needs a result without labels, this one has {self._terms.text()}"
            )
        best = _Best(self._semiring)
        for fixed in self._slices():
            parts = [_sliced(x, t, fixed) for x, t in zip(arrays, self._terms.inputs, strict=True)]
            tensors = run(self._plan, parts, self._semiring)
            if best.add(tensors[-1], return_assignment):
                best.assignment = {**fixed, **assignment_of(self._plan, tensors, self._semiring)}
        value = self._ordered(best.value)
        if out is not None:
            value = _written(out, value)
        elif isinstance(value, np.ndarray) and value.ndim == 0:
            value = value[()]
        if not return_assignment:
            return value
        assert best.assignment is not None
        return EinsumResult(value, {label: best.assignment[label] for label in self._sizes})

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

    def __init__(self, semiring: str) -> None:
        self.semiring = semiring
        self.value: Any = None
        self.assignment: dict[Label, int] | None = None

    def add(self, value: Any, wanted: bool) -> bool:
        """Whether its assignment is wanted and better than that of the slices before."""
        if self.value is None:
            self.value = value
            return wanted
        both = namespace(value).stack([self.value.reshape(-1), value.reshape(-1)], -1)
        if not wanted:
            self.value = total(both, self.semiring).reshape(value.shape)
            return False
        got = total(both, self.semiring, argmax=True)
        self.value = got.values.reshape(value.shape)
        return int(got.argmax[0, 0]) == 1


def run(plan: Plan, operands: list[Any], semiring: str) -> list[Any]:
    """All tensors of the plan, the operands first."""
    tensors = list(operands)
    for step in plan.steps:
        if isinstance(step, Product):
            a = permuted(tensors[step.a], step.a_order).reshape(step.a_shape)
            b = permuted(tensors[step.b], step.b_order).reshape(step.b_shape)
            tensors.append(batched(a, b, semiring).reshape(step.c_shape))
            continue
        x, labels = diagonal(tensors[step.x], step.labels)
        x = permuted(x, tuple(labels.index(y) for y in (*step.kept, *step.summed)))
        if step.summed:
            kept = tuple(plan.sizes[y] for y in step.kept)
            x = total(
                x.reshape((math.prod(kept), -1 if x.size else plan.elements(step.summed))), semiring
            ).reshape(kept)
        tensors.append(x)
    return tensors


def _sliced(x: Any, term: tuple[Label, ...], fixed: dict[Label, int]) -> Any:
    """``x`` at one index of the sliced labels, which keep an axis of size 1."""
    if not any(label in fixed for label in term):
        return x
    return x[tuple(slice(fixed[y], fixed[y] + 1) if y in fixed else slice(None) for y in term)]


def _rank(x: Any, which: int) -> int:
    return len(_shape(x, which))


def _shape(x: Any, which: int) -> tuple[int, ...]:
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise TypeError(
            f"operands[{which}] is of type {type(x).__name__}, expected an array; use numpy.asarray"
        )
    return tuple(x.shape)


def _written(out: Any, value: Any) -> Any:
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
