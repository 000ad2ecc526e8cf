"""Under JAX's transformations, beside the formula under the same ones."""

import pytest
import tropical_gemm as tg
from jax_cases import KINDS, calls, formula, jax, jnp, normal, same, x64

pytestmark = pytest.mark.usefixtures(x64.__name__)


def pair(semiring):
    """The product, and the formula."""
    return lambda a, b: tg.matmul(a, b, semiring=semiring), formula(semiring)


@pytest.fixture(params=KINDS)
def both(request):
    return pair(request.param)


def everything_same(everything, both):
    got, expected = (everything(product) for product in both)
    for name in got:
        same(got[name], expected[name], name)


AXES = (
    ((0, None), (6, 4, 5), (5, 3)),
    ((None, 0), (4, 5), (6, 5, 3)),
    ((1, 2), (4, 6, 5), (5, 3, 6)),
    ((-1, None), (4, 5, 6), (5, 3)),
    ((0, 0), (6, 2, 4, 5), (6, 5, 3)),
    ((0, None), (6, 2, 4, 5), (1, 5, 3)),
    ((None, 1), (2, 4, 5), (2, 6, 5, 3)),
)


@pytest.mark.parametrize(("dims", "shape_a", "shape_b"), AXES, ids=str)
def test_vmap(both, dims, shape_a, shape_b):
    a, b = normal(*shape_a), normal(*shape_b, seed=1)

    def everything(product):
        def loss(a, b):
            return jnp.sin(product(a, b)).sum()

        over = jax.vmap(product, dims)
        return {
            "vmap": over(a, b),
            "jit of vmap": jax.jit(over)(a, b),
            "vmap to the end": jax.vmap(product, dims, out_axes=-1)(a, b),
            "vmap of grad": jax.vmap(jax.grad(loss, (0, 1)), dims)(a, b),
            "grad of vmap": jax.grad(lambda a, b: jnp.sin(over(a, b)).sum(), (0, 1))(a, b),
            "vmap of hessian": jax.vmap(jax.hessian(loss, (0, 1)), dims)(a, b),
        }

    everything_same(everything, both)


def test_vmap_stays_one_call(both):
    a, b = normal(6, 4, 5), normal(7, 5, 3)
    product, _ = both
    twice = jax.vmap(jax.vmap(product, (0, None)), (None, 0))
    assert calls(twice, a, b) == (1, 0)
    grads = jax.vmap(jax.grad(lambda a, b: product(a, b).sum(), (0, 1)), (0, None))
    assert calls(grads, a, b[0]) == (1, 1)
    assert calls(jax.grad(lambda a, b: jax.vmap(product, (0, None))(a, b).sum(), (0, 1)), a, b[0]) == (1, 1)


def test_vmap_of_what_else_a_call_gives():
    a, b = normal(6, 4, 5), normal(5, 3)
    got = jax.vmap(lambda a: tg.matmul(a, b, return_argmax=True, argmax_offset=2))(a)
    same(got, tg.matmul(a, b, return_argmax=True, argmax_offset=2))


def test_nested_vmap(both):
    a, b = normal(6, 4, 5), normal(7, 5, 3, seed=1)

    def everything(product):
        twice = jax.vmap(jax.vmap(product, (0, None)), (None, 0))
        return {
            "twice": twice(a, b),
            "grad": jax.grad(lambda a, b: jnp.sin(twice(a, b)).sum(), (0, 1))(a, b),
            "collective": jax.vmap(lambda a: jax.lax.pmax(product(a, b[0]), "i"), axis_name="i")(a),
        }

    everything_same(everything, both)


def test_vectors(both):
    a, b = normal(6, 5), normal(5, 3)
    product, _ = both
    same(jax.vmap(product, (0, None))(a, b), product(a, b))
    same(jax.jacrev(lambda v: product(v, b))(a[0]), jax.jacrev(lambda v: product(v[None], b)[0])(a[0]))
    same(jax.grad(lambda v: product(v, b[:, 0]))(a[0]), jax.grad(lambda v: product(v[None], b)[0, 0])(a[0]))


def test_derivatives(both):
    a, b = normal(4, 5), normal(5, 3)
    ta, tb = normal(4, 5, seed=1), normal(5, 3, seed=1)

    def everything(product):
        def loss(a, b):
            return jnp.sin(product(a, b)).sum()

        values, pull = jax.vjp(product, a, b)
        return {
            "grad": jax.grad(loss, (0, 1))(a, b),
            "grad of one": jax.grad(loss)(a, b),
            "jit of grad": jax.jit(jax.grad(loss, (0, 1)))(a, b),
            "grad of jit": jax.grad(jax.jit(loss), (0, 1))(a, b),
            "vjp": (values, pull(jnp.ones_like(values))),
            "vjp, batched": jax.vmap(pull)(jnp.stack([values, 2 * values])),
            "jvp": jax.jvp(product, (a, b), (ta, tb)),
            "jit of jvp": jax.jit(lambda *x: jax.jvp(product, x[:2], x[2:]))(a, b, ta, tb),
            "jvp of one": jax.jvp(lambda b: product(a, b), (b,), (tb,)),
            "jvp, batched": jax.vmap(lambda t: jax.jvp(product, (a, b), (t, tb))[1])(jnp.stack([ta, 2 * ta])),
            "jacrev": jax.jacrev(product, (0, 1))(a, b),
            "jacfwd": jax.jacfwd(product, (0, 1))(a, b),
            "hessian": jax.hessian(loss, (0, 1))(a, b),
            "reverse over reverse": jax.jacrev(jax.jacrev(loss, (0, 1)), (0, 1))(a, b),
            "reverse over forward": jax.jacrev(jax.jacfwd(loss, (0, 1)), (0, 1))(a, b),
            "forward over forward": jax.jacfwd(jax.jacfwd(loss, (0, 1)), (0, 1))(a, b),
            "linearize": jax.linearize(lambda a: product(a, b), a)[1](ta),
            "linear_transpose": jax.linear_transpose(jax.linearize(lambda a: product(a, b), a)[1], ta)(
                values
            ),
        }

    everything_same(everything, both)


def test_third_derivatives():
    a, b = normal(2, 3), normal(3, 2, seed=1)

    def everything(product):
        def loss(a, b):
            return jnp.sin(product(a, b)).sum()

        return {
            "of a hessian": jax.jacrev(jax.hessian(loss, (0, 1)), (0, 1))(a, b),
            "reverse": jax.jacrev(jax.jacrev(jax.jacrev(loss, (0, 1)), (0, 1)), (0, 1))(a, b),
        }

    everything_same(everything, pair("max_mul"))


def test_a_batch_on_one_side_of_a_linear_function(both):
    """What varies over the batch is not what the derivative is taken by."""
    a, b, w = normal(4, 5), normal(5, 3), normal(6, 5, 3, seed=1)

    def everything(product):
        def loss(a, b, w):
            return jnp.sin(product(a, b + w)).sum()

        def slope(a, w):
            return jax.jvp(lambda b: product(a, b), (b + w,), (b,))[1].sum()

        return {
            "shared a": jax.grad(lambda a: jax.vmap(loss, (None, None, 0))(a, b, w).sum())(a),
            "shared b": jax.grad(lambda b: jax.vmap(loss, (None, None, 0))(a, b, w).sum())(b),
            "both": jax.grad(lambda a, b: jax.vmap(loss, (None, None, 0))(a, b, w).sum(), (0, 1))(a, b),
            "slopes": jax.grad(lambda a: jax.vmap(slope, (None, 0))(a, w).sum())(a),
            "per sample": jax.vmap(jax.grad(loss, (0, 1)), (None, None, 0))(a, b, w),
            "second": jax.jacrev(lambda a: jax.vmap(jax.grad(loss), (None, None, 0))(a, b, w).sum(0))(a),
        }

    everything_same(everything, both)


def test_in_loops(both):
    a, b, c = (normal(4, 4, seed=i) for i in range(3))

    def everything(product):
        def chain(a, b):
            return jax.lax.scan(lambda c, _: (jnp.tanh(product(c, b)), None), a, length=3)[0].sum()

        rematted = jax.checkpoint(lambda a, b: jnp.sin(product(a, b)))
        return {
            "grad of scan": jax.grad(chain, (0, 1))(a, b),
            "jvp of scan": jax.jvp(chain, (a, b), (c, a)),
            "vmap of grad of scan": jax.vmap(jax.grad(chain), (0, None))(jnp.stack([a, c]), b),
            "checkpoint": jax.grad(lambda a, b: rematted(a, b).sum(), (0, 1))(a, b),
            "cond": jax.grad(lambda a: jax.lax.cond(a[0, 0] > 9, lambda: 0.0, lambda: product(a, b).sum()))(
                a
            ),
        }

    everything_same(everything, both)
