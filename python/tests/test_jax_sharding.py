"""Several devices: shard_map on two CPU devices, one product on each; arrays that are spread under jit."""

from functools import partial

import pytest
import tropical_gemm as tg
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from jax_cases import KINDS, calls, formula, jax, jnp, normal, same, x64

pytestmark = pytest.mark.usefixtures(x64.__name__)


@pytest.fixture
def mesh():
    devices = jax.devices("cpu")
    if len(devices) < 2:
        pytest.skip("XLA_FLAGS is set, without --xla_force_host_platform_device_count")
    return jax.sharding.Mesh(devices[:2], "x")


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("semiring", KINDS)
def test_rows_and_columns(mesh, semiring, checks):
    a, b = normal(6, 5), normal(5, 4)
    product = partial(tg.matmul, semiring=semiring)
    for specs in (((P("x"), P()), P("x")), ((P(), P(None, "x")), P(None, "x"))):
        over = jax.shard_map(product, mesh=mesh, in_specs=specs[0], out_specs=specs[1], check_vma=checks)
        same(over(a, b), product(a, b))
        same(jax.jit(over)(a, b), product(a, b))

        def loss(f, a, b):
            return jnp.sin(f(a, b)).sum()

        # What is the same on both devices gets the sum of both gradients.
        same(
            jax.grad(partial(loss, over), (0, 1))(a, b),
            jax.grad(partial(loss, formula(semiring)), (0, 1))(a, b),
        )
        same(jax.jvp(over, (a, b), (a, b)), jax.jvp(formula(semiring), (a, b), (a, b)))


def test_the_summed_axis(mesh):
    """Each device has a piece of K; indices are told by argmax_offset, and the best of all is taken."""
    a, b = normal(6, 10), normal(10, 4)

    def piece(a, b):
        first = jax.lax.axis_index("x") * a.shape[-1]
        values, argmax = tg.matmul(a, b, return_argmax=True)
        best = jax.lax.pmax(values, "x")
        return best, jax.lax.pmin(jnp.where(values == best, argmax + first, 10), "x")

    got = jax.shard_map(piece, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P())(a, b)
    same(tuple(got), tuple(tg.matmul(a, b, return_argmax=True)))


def test_spread_operands_under_jit(mesh):
    """XLA knows no way to divide a custom call: the operands are brought together, the result is right."""
    a, b = normal(6, 5), normal(5, 4)
    spread = jax.device_put(a, NamedSharding(mesh, P("x")))
    everywhere = jax.device_put(b, NamedSharding(mesh, P()))
    same(jax.jit(tg.matmul)(spread, everywhere), tg.matmul(a, b))
    same(tg.matmul(spread, everywhere), tg.matmul(a, b))
    same(
        jax.grad(lambda a: tg.matmul(a, everywhere).sum())(spread),
        jax.grad(lambda a: tg.matmul(a, b).sum())(a),
    )
    with pytest.raises(ValueError, match="a is on the CPU and cpu:1 and b is on"):
        tg.matmul(spread, jax.device_put(b, jax.devices("cpu")[0]))


@pytest.mark.skipif(not hasattr(jax.sharding, "reshard"), reason="JAX 0.8 or newer is needed")
def test_operands_whose_types_are_spread(mesh):
    """The same where types say how arrays are divided."""
    explicit = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,), devices=mesh.devices)
    a, b = normal(6, 10), normal(10, 4)

    def loss(a, b):
        return jnp.sin(tg.matmul(a, b, semiring="max_mul")).sum()

    for parts in ((P("x"), P()), (P(None, "x"), P("x")), (P(), P(None, "x"))):
        x, y = (jax.device_put(z, NamedSharding(explicit, p)) for z, p in zip((a, b), parts, strict=True))
        same(jax.jit(tg.matmul)(x, y), tg.matmul(a, b))
        grads = jax.jit(jax.grad(loss, (0, 1)))(x, y)
        same(grads, jax.grad(loss, (0, 1))(a, b))
        assert [jax.typeof(g).sharding for g in grads] == [jax.typeof(z).sharding for z in (x, y)]


def test_two_devices_at_once(mesh):
    a, b = normal(6, 50, 40), normal(6, 40, 30)
    over = jax.jit(
        jax.shard_map(lambda a, b: tg.matmul(a, b), mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))
    )
    assert calls(over, a, b) == (1, 0)  # one program, run by both
    for _ in range(20):
        same(over(a, b), tg.matmul(a, b))


def test_an_array_on_no_device_in_particular_goes_where_the_other_is():
    a, b = jnp.ones((4, 8)), jnp.ones((8, 3))
    c = tg.matmul(jax.device_put(a, jax.devices()[-1]), b)
    assert c.devices() == {jax.devices()[-1]}
    assert c.tolist() == [[2] * 3] * 4
