"""``matmul`` and ``matmul_backward`` on JAX arrays, traced ones included: what the arguments mean."""

from functools import partial
from operator import index
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from .. import _core, _ops
from .._arrays import common_kind, jax_kind
from . import _autograd
from ._operators import product_p


def matmul(
    a: Any,
    b: Any,
    *,
    semiring: str = "max_plus",
    return_argmax: bool = False,
    out: Any = None,
    accumulate: bool = False,
    argmax_offset: int = 0,
    stream: Any = None,
    threads: int | None = None,
) -> Any:
    """:func:`tropical_gemm.matmul` on JAX arrays, which that function calls for them.

    Shapes, dtypes, values, argmax and errors are those of :func:`tropical_gemm.matmul`. One custom call of
    XLA's, on CPUs and CUDA devices, inside and outside of jit; under vmap it stays one. Derivatives of any
    order, forward and reverse, go through the one index that was selected, the lowest on a tie; where none
    was (index -1), nothing flows. float64 and int64 need ``jax_enable_x64``.

    Raises
    ------
    TypeError
        For ``out``, since JAX arrays are immutable (``jnp.maximum(c, matmul(a, b))`` and its like
        accumulate); else as :func:`tropical_gemm.matmul`.
    ValueError
        For ``stream``: XLA says on which stream the work runs; else as :func:`tropical_gemm.matmul`.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from tropical_gemm.jax import matmul
    >>> a, b = jnp.array([[1.0, 2.0]]), jnp.array([[3.0], [0.0]])
    >>> jax.grad(lambda a: matmul(a, b).sum())(a)
    Array([[1., 0.]], dtype=float32)
    """
    want_argmax, _, outputs = _ops.wanted(return_argmax, accumulate, out)
    _check({"a": a, "b": b, **outputs}, stream)
    for name, x in outputs.items():
        jax_kind.output(x, name)
    _core.product_shape(_described(a), _described(b), semiring, want_argmax, argmax_offset, threads)
    made = _product(
        a, b, semiring=_core.semiring_name(semiring), argmax=want_argmax, offset=index(argmax_offset),
        threads=index(threads or 0),
    )  # fmt: skip
    return _ops.MatmulResult(*made) if want_argmax else made[0]


def matmul_backward(
    grad_c: Any,
    argmax: Any,
    a: Any,
    b: Any,
    *,
    semiring: str = "max_plus",
    needs: tuple[bool, bool] = (True, True),
    stream: Any = None,
    threads: int | None = None,
) -> _ops.MatmulGradients:
    """:func:`tropical_gemm.matmul_backward` on JAX arrays, itself differentiable."""
    needs = _ops.needed(needs)
    arrays = {"grad_c": grad_c, "argmax": argmax, "a": a, "b": b}
    _check(arrays, stream)
    g, k, x, y = map(_described, arrays.values())
    _core.check_backward(g, k, x, y, semiring, threads)
    made = _gradients(
        *arrays.values(), semiring=_core.semiring_name(semiring), needs=needs, threads=index(threads or 0)
    )
    return _ops.MatmulGradients(*made)


@partial(jax.jit, static_argnames=("semiring", "argmax", "offset", "threads"), inline=True)
def _product(a: Any, b: Any, *, semiring: str, argmax: bool, offset: int, threads: int) -> Any:
    x, y, dropped = _matrices(a, b)
    made = product_p.bind(x, y, semiring=semiring, argmax=argmax, offset=offset, threads=threads)
    return [jnp.squeeze(z, dropped) for z in made]


@partial(jax.jit, static_argnames=("semiring", "needs", "threads"), inline=True)
def _gradients(
    grad_c: Any, argmax: Any, a: Any, b: Any, *, semiring: str, needs: tuple[bool, bool], threads: int
) -> Any:
    x, y, dropped = _matrices(a, b)
    g, k = (jnp.expand_dims(_whole(z), dropped) for z in (grad_c, argmax))
    g, k, x, y = _alike(g, k, x, y)
    shapes = tuple(z.shape if need else None for z, need in zip((x, y), needs, strict=True))
    made = _autograd.gradient(g, k, x, y, shapes, semiring, threads)  # type: ignore[arg-type]
    return [z if z is None else z.reshape(of.shape) for z, of in zip(made, (a, b), strict=True)]


def _described(x: Any) -> tuple[tuple[int, ...], str]:
    return tuple(map(index, x.shape)), str(x.dtype)


def _check(arrays: dict[str, Any], stream: Any) -> None:
    for name, x in arrays.items():
        if not isinstance(x, jax.Array):
            common_kind(**arrays)  # says which two kinds were mixed
            raise TypeError(
                f"{name} is of type {type(x).__module__}.{type(x).__qualname__}, expected a jax.Array; "
                f"use jax.numpy.asarray({name})"
            )
        if x.dtype in ("float64", "int64") and not jax_kind.wide():
            raise TypeError(
                f"{name} has dtype {x.dtype}, with which JAX computes after "
                "jax.config.update('jax_enable_x64', True)"
            )
    concrete = {name: x for name, x in arrays.items() if not jax_kind.is_traced(x)}
    for name, x in concrete.items():
        jax_kind.check_alive(x, name)
    # Arrays that were not put on a device by hand go where the others are, as everywhere in JAX.
    concrete = {name: x for name, x in concrete.items() if getattr(x, "committed", True)}
    first, *others = concrete or [""]
    for name in others:
        places = [concrete[n].devices() for n in (first, name)]
        if places[0] != places[1]:
            said = [" and ".join(map(_place, sorted(p, key=lambda d: d.id))) for p in places]
            raise ValueError(
                f"{first} is on {said[0]} and {name} is on {said[1]}; "
                "all arrays of a call have to be on one device"
            )
    if stream is not None:
        raise ValueError(f"stream is {stream!r}, expected None: XLA says on which stream JAX arrays are used")


def _place(device: Any) -> str:
    if device.platform == "cpu" and device.id == 0:
        return "the CPU"
    return f"{'cuda' if device.platform == 'gpu' else device.platform}:{device.id}"


def _matrices(a: Any, b: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """The operands as matrices with equally many leading axes, and the axes that the product lacks."""
    dropped = (*((-2,) if a.ndim == 1 else ()), *((-1,) if b.ndim == 1 else ()))
    a, b = _whole(a), _whole(b)
    x = a[None] if a.ndim == 1 else a
    y = b[:, None] if b.ndim == 1 else b
    most = max(x.ndim, y.ndim)
    x, y = (jnp.expand_dims(z, tuple(range(most - z.ndim))) for z in (x, y))
    return *_alike(x, y), dropped


def _whole(x: Any) -> Any:
    """What the type says to be divided over a mesh, in whole on each device: a custom call is not divided."""
    sharding = jax.typeof(x).sharding
    if all(part is None for part in sharding.spec):
        return x
    everywhere: Any = PartitionSpec
    reshard: Any = jax.sharding.reshard
    return reshard(x, NamedSharding(sharding.mesh, everywhere()))


def _alike(*arrays: Any) -> tuple[Any, ...]:
    """Inside shard_map, arrays that all vary over the axes of the mesh that one of them varies over.

    What is the same everywhere has to say so, for its gradient to be summed over these axes.
    """
    over = [_varying(x) for x in arrays]
    every = frozenset().union(*over)
    return tuple(
        _vary(x, tuple(sorted(every - own))) if every - own else x
        for x, own in zip(arrays, over, strict=True)
    )


def _varying(x: Any) -> frozenset[Any]:
    kind = jax.typeof(x)
    found: frozenset[Any] = kind.mat.varying if hasattr(kind, "mat") else kind.vma  # before JAX 0.11
    return found


def _vary(x: Any, axes: tuple[Any, ...]) -> Any:
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(x, axes, to="varying")
    return getattr(jax.lax, "pvary")(x, axes)  # noqa: B009  # before JAX 0.9
