"""Gradients of JAX arrays: against the formula, differences, those of NumPy arrays; what they compute."""

import cases
import numpy as np
import oracle
import pytest
import tropical_gemm as tg
import tropical_gemm.jax as tgj
from jax.test_util import check_grads
from jax_cases import KINDS, SEMIRINGS, calls, formula, jax, jnp, normal, same, x64

pytestmark = pytest.mark.usefixtures(x64.__name__)


def matrices(a, b):
    return a[None] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b


@pytest.mark.parametrize(
    ("semiring", "shapes"),
    [
        (s, x)
        for s in SEMIRINGS
        for x in (cases.GRADIENT_SHAPES if s in KINDS else cases.GRADIENT_SHAPES[1:2])
    ],
    ids=str,
)
def test_against_the_formula(semiring, shapes):
    a, b = (normal(*s, seed=i) for i, s in enumerate(shapes))
    c, pull = jax.vjp(lambda a, b: tg.matmul(a, b, semiring=semiring), a, b)
    weight = normal(*c.shape)
    got = pull(weight)
    dots = jax.jvp(lambda a, b: tg.matmul(a, b, semiring=semiring), (a, b), (a, b))[1]
    if a.shape[-1] == 0:
        assert not any(x.any() for x in (*got, dots))
        return
    expected, pull = jax.vjp(lambda a, b: formula(semiring)(*matrices(a, b)).reshape(c.shape), a, b)
    same((c, got), (expected, pull(weight)))
    same(dots, jax.jvp(lambda a, b: formula(semiring)(*matrices(a, b)).reshape(c.shape), (a, b), (a, b))[1])


@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_differences(semiring):
    a, b = normal(2, 3, 4), normal(4, 2)
    check_grads(lambda a, b: tg.matmul(a, b, semiring=semiring), (a, b), order=2, modes=("fwd", "rev"))


on_cpu = jax.default_backend() == "cpu"


def same_up_to_rounding(got, expected):
    same(tuple(got), tuple(jnp.asarray(x) for x in expected))


@pytest.mark.parametrize(("semiring", "dtype"), oracle.FLOAT_PAIRS)
def test_the_same_call_as_for_numpy_arrays(semiring, dtype):
    rng = np.random.default_rng(0)
    a, b = (cases.values(rng, fill, semiring, dtype, s) for fill, s in (("nans", (2, 9, 7)), ("few", (7, 6))))
    g = cases.values(rng, "uniform", semiring, dtype, (2, 9, 6))
    argmax = tg.matmul(a, b, semiring=semiring, return_argmax=True).argmax
    expected = tg.matmul_backward(g, argmax, a, b, semiring=semiring)
    x, y, w = map(jnp.asarray, (a, b, g))
    # To the bit; a GPU sums in another order.
    equal = (lambda got, said: [*map(oracle.assert_same, got, said)]) if on_cpu else same_up_to_rounding
    grads = jax.vjp(lambda x, y: tg.matmul(x, y, semiring=semiring), x, y)[1](w)
    for product in (tg.matmul_backward, tgj.matmul_backward):
        for index in (argmax, argmax.astype(np.int64)):
            got = product(w, jnp.asarray(index), x, y, semiring=semiring)
            equal(got, expected)
    equal(grads, expected)


def test_the_gradient_by_itself():
    a, b = normal(2, 4, 5), normal(5, 3)
    for semiring in KINDS:
        argmax = tg.matmul(a, b, semiring=semiring, return_argmax=True).argmax
        g = normal(2, 4, 3)

        def gradient(g, a, b, argmax=argmax, semiring=semiring):
            g, a, b = map(jnp.asarray, (g, a, b))  # check_grads brings NumPy's
            return tuple(tg.matmul_backward(g, argmax, a, b, semiring=semiring))

        same(gradient(g, a, b), jax.vjp(formula(semiring), a, b)[1](g))
        same(jax.jit(gradient)(g, a, b), gradient(g, a, b))
        check_grads(gradient, (g, a, b), order=2, modes=("fwd", "rev"))
        only = tg.matmul_backward(g, argmax, a, b, semiring=semiring, needs=(False, True))
        assert only.grad_a is None
        same(only.grad_b, gradient(g, a, b)[1])
        assert tuple(tg.matmul_backward(g, argmax, a, b, needs=(False, False))) == (None, None)
    vector = tg.matmul_backward(g[0, 0], argmax[0, 0], a[0, 0], b, semiring=semiring)
    assert (vector.grad_a.shape, vector.grad_b.shape) == ((5,), (5, 3))
    scalar = tg.matmul_backward(g[0, 0, 0], argmax[0, 0, 0], a[0, 0], b[:, 0], semiring=semiring)
    assert (scalar.grad_a.shape, scalar.grad_b.shape) == ((5,), (5,))


def test_the_gradient_refuses_what_it_refuses_for_numpy_arrays():
    a, b, g, k = np.ones((3, 4)), np.ones((4, 5)), np.ones((3, 5)), np.zeros((3, 5), np.int32)
    whole = a.astype(np.int32), b.astype(np.int32), g.astype(np.int32)
    refused = [
        ((g[:, :4], k, a, b), {}),
        ((g.astype(np.float32), k, a, b), {}),
        ((g, k[:2], a, b), {}),
        ((g, g, a, b), {}),
        ((g, k, a, a), {}),
        ((whole[2], k, *whole[:2]), {}),
        ((g, k, a, b), {"semiring": "nope"}),
        ((g, k, a, b), {"threads": 0}),
        ((g, k, a, b), {"needs": True}),
    ]
    for arrays, options in refused:
        with pytest.raises((TypeError, ValueError)) as expected:
            tg.matmul_backward(*arrays, **options)
        with pytest.raises(expected.type) as got:
            tg.matmul_backward(*map(jnp.asarray, arrays), **options)
        assert str(got.value) == str(expected.value)


def test_a_tie_goes_to_the_first():
    a, b = jnp.array([[1.0, 3.0, 3.0]]), jnp.zeros((3, 2))
    grads = jax.grad(lambda a, b: tg.matmul(a, b).sum(), (0, 1))(a, b)
    assert grads[0].tolist() == [[0, 2, 0]]
    assert grads[1].tolist() == [[0, 0], [1, 1], [0, 0]]


def test_masked_rows_train_nothing():
    a, b = jnp.array([[-jnp.inf, -jnp.inf], [1.0, -jnp.inf]]), jnp.array([[1.0], [2.0]])
    assert tg.matmul(a, b, return_argmax=True).argmax.tolist() == [[-1], [0]]
    grads = jax.grad(lambda a, b: tg.matmul(a, b).sum(), (0, 1))(a, b)
    assert grads[0].tolist() == [[0, 0], [1, 0]]
    assert grads[1].tolist() == [[1], [0]]
    assert jax.jvp(tg.matmul, (a, b), (jnp.ones_like(a), jnp.ones_like(b)))[1].tolist() == [[0], [2]]


@pytest.mark.parametrize("semiring", KINDS)
def test_an_offset_moves_only_the_indices(semiring):
    a, b = normal(4, 5), normal(5, 3)

    def run(offset):
        def loss(a, b):
            c = tg.matmul(a, b, semiring=semiring, return_argmax=True, argmax_offset=offset)
            return jnp.sin(c.values).sum(), c.argmax

        return jax.grad(loss, (0, 1), has_aux=True)(a, b)

    (grads, argmax), (moved, far) = run(0), run(100)
    same(moved, grads)
    same(far, argmax + 100)


def test_only_what_is_needed():
    a, b = normal(4, 5), normal(5, 3)

    def loss(a, b, semiring):
        return tg.matmul(a, b, semiring=semiring).sum()

    for semiring in KINDS:
        forward = str(jax.make_jaxpr(lambda a, b, s=semiring: loss(a, b, s))(a, b))
        assert "argmax=False" in forward
        for wanted, shapes in ((0, "((4, 5), None)"), (1, "(None, (5, 3))"), ((0, 1), "((4, 5), (5, 3))")):
            gradient = jax.grad(lambda a, b, s=semiring: loss(a, b, s), wanted)
            assert f"shapes={shapes}" in str(jax.make_jaxpr(gradient)(a, b))
            assert calls(gradient, a, b) == (1, 1)
        # What is kept for the backward pass; of max_plus only the indices.
        kept = jax.tree.leaves(
            jax.eval_shape(lambda b, s=semiring: jax.vjp(lambda b: loss(a, b, s), b)[1], b)
        )
        sizes = sorted(x.size for x in kept)
        assert sizes == {"max_plus": [12], "max_mul": [12, 20], "min_max": [12, 15, 20]}[semiring]


def test_integers_and_bool_have_no_gradient():
    a = jnp.ones((3, 3), "int32")
    assert tg.matmul(a, a).tolist() == [[2] * 3] * 3
    with pytest.raises(TypeError, match="grad requires real"):
        jax.grad(lambda a: tg.matmul(a, a).sum())(a)
    dot = np.zeros((3, 3), jax.dtypes.float0)
    values, change = jax.jvp(tg.matmul, (a, a), (dot, dot))
    assert (values.dtype, change.dtype) == ("int32", jax.dtypes.float0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrow_dtypes(dtype):
    a, b = normal(4, 5, dtype=dtype), normal(5, 3, dtype=dtype)
    for semiring in KINDS:
        got = jax.grad(lambda a, b, s=semiring: tg.matmul(a, b, semiring=s).sum(), (0, 1))(a, b)
        assert [x.dtype for x in got] == [dtype, dtype]
        same(got, jax.grad(lambda a, b, s=semiring: formula(s)(a, b).sum(), (0, 1))(a, b))


def test_a_shared_weight_is_summed_in_the_call():
    """No gradient of the size of batch times operand."""
    x, w = normal(16, 8, 12), normal(12, 10)
    text = jax.jit(jax.grad(lambda w: tg.matmul(x, w).sum())).lower(w).compile().as_text()
    assert "f64[16,12,10]" not in text
    assert "f64[1,12,10]" in text
