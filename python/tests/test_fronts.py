"""Every front end gives the oracle's bits for random products, and refuses the same things."""

import math

import numpy as np
import oracle
import problems
import pytest
from fronts import FRONTS
from hypothesis import given, settings
from hypothesis import strategies as st
from tropical_gemm import _core

pytestmark = pytest.mark.hypothesis  # the draws are inside of the tests, as many as the front can afford


def fronts(able=lambda front: True):
    return pytest.mark.parametrize(
        "front",
        [pytest.param(front, id=name, marks=front.marks) for name, front in FRONTS.items() if able(front)],
    )


def holds(front, strategy, share=1.0):
    """Checks a function for draws from a strategy, on each instruction set that a draw names."""

    def check(function):
        @settings(max_examples=math.ceil(settings().max_examples * front.share * share))
        @given(strategy)
        def one(drawn):
            with front.session():
                function(drawn)

        try:
            one()
        finally:
            _core.set_isa("")

    return check


def put(front, *arrays):
    return [front.put(x) for x in arrays]


@fronts()
def test_products(front):
    @holds(front, problems.products(pairs=front.pairs, **front.shapes))
    def check(problem):
        _core.set_isa(problem.isa)
        if not front.offsets:
            problem.offset = 0
        values, argmax = problem.expected()
        a, b = put(front, problem.a, problem.b)
        options = {"semiring": problem.semiring, "threads": problem.threads}
        oracle.assert_same(front.get(front.matmul(a, b, **options)), values, "values alone")
        if front.values_only:
            return
        if front.offsets:
            options["argmax_offset"] = problem.offset
        got = front.matmul(a, b, **options, return_argmax=True)
        oracle.assert_same(front.get(got[0]), values)
        oracle.assert_same(front.get(got[1]), argmax, "argmax")


@fronts(lambda front: front.writes)
def test_outputs(front):
    drawn = problems.products(pairs=front.pairs, **front.shapes).flatmap(
        lambda p: st.tuples(st.just(p), problems.written(p), st.booleans())
    )

    @holds(front, drawn)
    def check(case):
        problem, outputs, accumulate = case
        _core.set_isa(problem.isa)
        a, b = problem.a.copy(), problem.b.copy()
        values, argmax = (
            oracle.accumulated(problem.semiring, *outputs, a, b, problem.offset)
            if accumulate
            else problem.expected()
        )
        x, y, c, i = put(front, problem.a, problem.b, *outputs)
        (alone,) = put(front, outputs[0].copy())
        options = {"semiring": problem.semiring, "threads": problem.threads, "accumulate": accumulate}
        assert front.matmul(x, y, out=alone, **options) is alone
        oracle.assert_same(front.get(alone), values, "values alone")
        got = front.matmul(x, y, out=(c, i), argmax_offset=problem.offset, **options)
        assert got[0] is c
        assert got[1] is i
        oracle.assert_same(front.get(c), values)
        oracle.assert_same(front.get(i), argmax, "argmax")
        oracle.assert_same(problem.a, a, "a")
        oracle.assert_same(problem.b, b, "b")


@fronts(lambda front: front.differentiates)
def test_gradients(front):
    pairs = [(s, d) for s, d in front.pairs if d in oracle.FLOATS]

    @holds(front, problems.gradients(own_argmax=front.own_argmax, pairs=pairs, **front.shapes), share=0.5)
    def check(gradient):
        problem = gradient.problem
        _core.set_isa(problem.isa)
        arrays = put(front, gradient.grad_c, gradient.argmax, problem.a, problem.b)
        options = {"semiring": problem.semiring, "needs": gradient.needs, "threads": problem.threads}
        got = front.backward(*arrays, **options)
        for name, grad, expected in zip(("grad_a", "grad_b"), got, gradient.expected(), strict=True):
            assert (grad is None) == (expected is None)
            if expected is not None:
                oracle.assert_same(front.get(grad), expected, name)


@fronts(lambda front: front.refuses)
def test_refusals(front):
    rules = problems.refusals(front)
    matrices = problems.products(pairs=front.pairs, vectors=False).filter(
        lambda p: p.a.size and p.b.size and p.a.shape[-2] * p.b.shape[-1] > 1
    )
    drawn = matrices.flatmap(
        lambda p: st.tuples(st.just(p), problems.written(p), st.sampled_from(sorted(rules)))
    )

    @holds(front, drawn)
    def check(case):
        problem, (c, argmax), rule = case
        refusal = rules[rule](problem, c, argmax)
        call = {"a": problem.a, "b": problem.b, "semiring": problem.semiring, "threads": problem.threads}
        if front.writes:
            call |= {"out": c, "argmax": argmax, "argmax_offset": problem.offset}
        call |= refusal.change
        call = {name: front.put(x) if isinstance(x, np.ndarray) else x for name, x in call.items()}
        outputs = {name: call.pop(name) for name in ("out", "argmax") if name in call}
        before = [front.get(x).copy() for x in outputs.values()]
        if front.writes:
            call["out"] = tuple(outputs.values())
        with pytest.raises(refusal.error, match=refusal.says) as caught:
            front.matmul(call.pop("a"), call.pop("b"), **call)
        assert isinstance(caught.value, refusal.error)
        for x, was in zip(outputs.values(), before, strict=True):
            oracle.assert_same(front.get(x), was, "what was to be written")
