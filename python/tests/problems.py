"""Random products for the tests of all front ends, with arrays to write, gradients, and what is refused."""

import dataclasses
import math
from typing import Any

import cases
import numpy as np
import oracle
import tropical_gemm as tg
from hypothesis import strategies as st

SIZES = (0, 1, 1, 2, 3, 5, 8, 17, 33)
LONG = (127, 257, 1031)
STEPS = (1, 1, 1, 2, -1, -3)


@dataclasses.dataclass(repr=False)
class Problem:
    semiring: str
    a: np.ndarray
    b: np.ndarray
    threads: int | None
    offset: int
    isa: str
    rng: np.random.Generator

    def expected(self):
        return oracle.product(self.semiring, self.a, self.b, self.offset)

    def __repr__(self):
        arrays = ", ".join(f"{name}: {x.shape} by {x.strides}" for name, x in (("a", self.a), ("b", self.b)))
        options = f"threads={self.threads}, offset={self.offset}, isa={self.isa}"
        with np.printoptions(threshold=50):
            return f"<{self.semiring} on {self.a.dtype}, {arrays}, {options}\n{self.a!r}\n{self.b!r}>"

    def _repr_pretty_(self, printer, cycle):
        printer.text(repr(self))  # with the strides, in hypothesis's reports too


def arranged(draw, x):
    """A copy of ``x`` with its axes in any order in memory, steps of both signs, and any start."""
    order = draw(st.permutations(range(x.ndim)))
    steps = [draw(st.sampled_from(STEPS)) for _ in x.shape]
    start = draw(st.integers(0, 3))
    spans = [(n - 1) * abs(step) + 1 if n else 0 for n, step in zip(x.shape, steps, strict=True)]
    memory = np.zeros(start + math.prod(spans), x.dtype)[start:].reshape([spans[d] for d in order])
    view = memory.transpose([order.index(d) for d in range(x.ndim)])
    view = view[(..., *(slice(None, None, step) for step in steps))]
    view[...] = x
    return view


def tangled(draw, make, shape):
    """An array whose elements share memory: any small strides, of 0 and of both signs."""
    strides = [draw(st.sampled_from((-2, -1, 0, 1, 2))) for _ in shape]
    reaches = [stride * max(n - 1, 0) for n, stride in zip(shape, strides, strict=True)]
    memory = make((sum(map(abs, reaches)) + 1,))
    first = -sum(reach for reach in reaches if reach < 0)
    bytes_of = [stride * memory.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(memory[first:], shape, bytes_of, writeable=False)


@st.composite
def sizes(draw):
    """M, K and N; or one of them long and the others small."""
    found = [draw(st.sampled_from(SIZES)) for _ in range(3)]
    if draw(st.integers(0, 5)) == 5:
        found = [min(n, 3) for n in found]
        found[draw(st.integers(0, 2))] = draw(st.sampled_from(LONG))
    return found


def leading(draw, axes):
    """Leading axes of an operand that broadcast to ``axes``."""
    kept = axes[draw(st.integers(0, len(axes))) :]
    return tuple(1 if draw(st.booleans()) else n for n in kept)


@st.composite
def products(draw, pairs=oracle.PAIRS, fills=cases.FILLS, vectors=True, batches=True):
    semiring, dtype = draw(st.sampled_from(pairs))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, k, n = draw(sizes())
    slow = dtype == "int64" and semiring.endswith(("plus", "mul"))  # the oracle counts in Python's integers
    axes = draw(st.lists(st.sampled_from((0, 1, 2, 3)), max_size=2)) if batches else []
    if slow or axes:
        m, n = (min(size, 8) for size in (m, n))
    shape_a, shape_b = (*leading(draw, axes), m, k), (*leading(draw, axes), k, n)
    which = draw(st.sampled_from(("", "", "", "", "a", "b", "ab"))) if vectors else ""
    shape_a = (k,) if "a" in which else shape_a
    shape_b = (k,) if "b" in which else shape_b

    def operand(shape):
        fill = draw(st.sampled_from(fills))

        def make(shape):
            return cases.values(rng, fill, semiring, dtype, shape)

        return tangled(draw, make, shape) if draw(st.integers(0, 3)) == 3 else arranged(draw, make(shape))

    return Problem(
        semiring,
        operand(shape_a),
        operand(shape_b),
        draw(st.sampled_from((None, 1, 2, 5))),
        draw(st.sampled_from((0, 0, 7, 2**31 - 1 - k))),
        draw(st.sampled_from(tg.info()["isas"])),
        rng,
    )


@st.composite
def written(draw, problem):
    """``(c, argmax)`` of earlier values; sometimes ``c`` lies between the elements of the operands."""
    rng, dtype = problem.rng, problem.a.dtype
    shape = problem.expected()[0].shape
    c = cases.values(rng, draw(st.sampled_from(cases.FILLS)), problem.semiring, dtype, shape)
    indices = arranged(draw, np.asarray(rng.integers(-1, 50, shape), np.int32))
    if draw(st.integers(0, 3)) < 3:
        return arranged(draw, c), indices
    together = [problem.a, problem.b, np.asarray(c)]
    memory = np.zeros((max(x.size for x in together), 3), dtype)
    views = [memory[: x.size, i].reshape(x.shape) for i, x in enumerate(together)]
    for view, x in zip(views, together, strict=True):
        view[...] = x
    problem.a, problem.b, c = views
    return c, indices


@dataclasses.dataclass
class Gradient:
    """Whole numbers whose sums and products are exact in every order."""

    problem: Problem
    grad_c: np.ndarray
    argmax: np.ndarray
    needs: tuple[bool, bool]

    def expected(self):
        p = self.problem
        grads = oracle.gradients(p.semiring, self.grad_c, self.argmax, p.a, p.b)
        return tuple(oracle.canonical(g) if need else None for g, need in zip(grads, self.needs, strict=True))


@st.composite
def gradients(draw, own_argmax=True, **options):
    """``own_argmax``: indices that the product does not select, also outside of the axis."""
    problem = draw(products(fills=("few", "masked", "signed_zeros"), **options))
    rng, dtype = problem.rng, problem.a.dtype
    problem.a, problem.b = (
        arranged(draw, np.where(np.isinf(x), np.asarray(2, dtype), np.rint(x)).astype(dtype))
        for x in (problem.a, problem.b)
    )
    problem.offset = 0
    argmax = problem.expected()[1]
    if own_argmax and draw(st.booleans()):
        argmax = rng.integers(-2, problem.a.shape[-1] + 2, argmax.shape)
    argmax = argmax.astype(draw(st.sampled_from((np.int32, np.int64))) if own_argmax else np.int32)
    grad_c = np.asarray(rng.integers(-1, 3, argmax.shape)).astype(dtype)
    needs = draw(st.sampled_from(((True, True), (True, False), (False, True))))
    return Gradient(problem, arranged(draw, grad_c), arranged(draw, np.asarray(argmax)), needs)


@dataclasses.dataclass
class Refusal:
    """One rule broken: what the call is given instead, the exception, and a pattern of its text."""

    change: dict[str, Any]
    error: type[Exception]
    says: str


def _other_dtype(x):
    return np.zeros(x.shape, np.float64 if x.dtype == np.float32 else np.float32)


def _one_more(x, axis):
    return np.zeros([n + (d == axis % x.ndim) for d, n in enumerate(x.shape)], x.dtype)


def _over(x, c):
    """An array like ``c`` that begins in the memory of ``x``, which is as large as both."""
    memory = np.zeros(x.size + c.size, x.dtype)
    memory[: x.size] = x.ravel()
    return memory[: x.size].reshape(x.shape), memory[x.size - 1 : x.size - 1 + c.size].reshape(c.shape)


def _frozen(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def _in_one(c):
    """Values like ``c`` and indices that begin at the same address."""
    memory = np.zeros(8 * c.size, np.uint8)
    return tuple(
        memory[: c.size * dtype.itemsize].view(dtype).reshape(c.shape) for dtype in (c.dtype, np.dtype("i4"))
    )


def _overlap(name, p, c):
    operand, out = _over(getattr(p, name), c)
    return Refusal({name: operand, "out": out}, ValueError, f"out overlaps {name}")


# Made of a problem of matrices, whose product has two elements or more, and of (c, argmax) that fit it.
OF_OPERANDS = {
    "K": lambda p, c, i: Refusal({"b": _one_more(p.b, -2)}, ValueError, r"a has shape .* b has shape"),
    "axes": lambda p, c, i: Refusal({"a": np.zeros((), p.a.dtype)}, ValueError, "a has 0 dimensions"),
    "batches": lambda p, c, i: Refusal(
        {name: np.zeros((n, *x.shape[-2:]), x.dtype) for n, name, x in ((2, "a", p.a), (3, "b", p.b))},
        ValueError,
        "leading axes do not broadcast",
    ),
    "dtypes": lambda p, c, i: Refusal({"b": _other_dtype(p.b)}, TypeError, f"b has dtype .*{p.a.dtype}"),
    "dtype": lambda p, c, i: Refusal(
        {"a": np.ones(p.a.shape, np.int8), "b": np.ones(p.b.shape, np.int8)}, TypeError, "a has dtype int8"
    ),
    "semiring": lambda p, c, i: Refusal({"semiring": "plus_times"}, ValueError, "plus_times"),
    "semiring of others": lambda p, c, i: Refusal(
        {"semiring": "max_plus" if p.semiring == "or_and" else "or_and"}, TypeError, "a has dtype .*or_and"
    ),
    "threads": lambda p, c, i: Refusal({"threads": -1}, ValueError, "threads"),
}
OF_OUTPUTS = {
    "offset": lambda p, c, i: Refusal({"argmax_offset": -1}, ValueError, "argmax_offset is -1"),
    "large offset": lambda p, c, i: Refusal({"argmax_offset": 2**31 - 1}, ValueError, "argmax_offset"),
    "out shape": lambda p, c, i: Refusal({"out": _one_more(c, -1)}, ValueError, "out has shape"),
    "out dtype": lambda p, c, i: Refusal({"out": _other_dtype(c)}, TypeError, "out has dtype"),
    "out repeats": lambda p, c, i: Refusal(
        {"out": np.lib.stride_tricks.as_strided(c, c.shape, (0,) * c.ndim)}, ValueError, "out .*stride 0"
    ),
    "argmax shape": lambda p, c, i: Refusal({"argmax": _one_more(i, 0)}, ValueError, "argmax has shape"),
    "argmax dtype": lambda p, c, i: Refusal({"argmax": i.astype(np.int64)}, TypeError, "argmax has dtype"),
}
OF_SHARED_MEMORY = {
    "out over a": lambda p, c, i: _overlap("a", p, c),
    "out over b": lambda p, c, i: _overlap("b", p, c),
    "argmax over out": lambda p, c, i: Refusal(
        dict(zip(("out", "argmax"), _in_one(c), strict=True)), ValueError, "argmax overlaps out"
    ),
}
OF_READ_ONLY = {
    "out": lambda p, c, i: Refusal({"out": _frozen(c)}, ValueError, "out is read-only"),
    "argmax": lambda p, c, i: Refusal({"argmax": _frozen(i)}, ValueError, "argmax is read-only"),
}


def refusals(front):
    """The rules that a front has."""
    found = dict(OF_OPERANDS)
    if front.writes:
        found |= OF_OUTPUTS
        found |= OF_SHARED_MEMORY if front.shares_memory else {}
        found |= OF_READ_ONLY if front.knows_read_only else {}
    return found
