"""Products of JAX arrays, inside and outside of jit, against the formula bit by bit; what is refused."""

import importlib
import threading

import cases
import numpy as np
import oracle
import pytest
import tropical_gemm as tg
import tropical_gemm.jax as tgj
from hypothesis import given, settings
from jax_cases import calls, jax, jnp, x64
from tropical_gemm import _core, _ops
from tropical_gemm.jax import _handlers

pytestmark = pytest.mark.usefixtures(x64.__name__)

jitted = jax.jit(tg.matmul, static_argnames=("semiring", "return_argmax", "argmax_offset", "threads"))

SHAPES = (
    ((3, 4), (4, 5)),
    ((17, 33), (33, 9)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (3, 4, 5)),
    ((4,), (4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (4,)),
    ((3, 0), (0, 5)),
    ((0, 4), (4, 5)),
    ((3, 4), (4, 0)),
    ((0, 3, 4), (1, 4, 5)),
)


def check(semiring, a, b, product=tg.matmul, **options):
    x, y = jnp.asarray(a), jnp.asarray(b)
    assert x.dtype == a.dtype
    values, argmax = oracle.product(semiring, a, b, options.get("argmax_offset", 0))
    got = product(x, y, semiring=semiring, return_argmax=True, **options)
    assert type(got) is _ops.MatmulResult
    assert isinstance(got.values, jax.Array)
    oracle.assert_same(got.values, values)
    oracle.assert_same(got.argmax, argmax, "argmax")
    if not options:
        oracle.assert_same(product(x, y, semiring=semiring), values, "values alone")


@pytest.mark.parametrize(("semiring", "dtype"), oracle.PAIRS)
def test_every_pair(semiring, dtype):
    rng = np.random.default_rng(0)
    for fill in cases.FILLS:
        a, b = (cases.values(rng, fill, semiring, dtype, s) for s in ((2, 9, 17), (17, 5)))
        check(semiring, a, b, jitted)


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_shapes(shapes):
    rng = np.random.default_rng(1)
    for semiring, dtype in (("max_plus", "float32"), ("min_plus", "int64"), ("or_and", "bool")):
        check(semiring, *(cases.values(rng, "uniform", semiring, dtype, s) for s in shapes))


@settings(max_examples=40)
@given(case=cases.products(sizes=(0, 1, 3, 17), depths=(0, 1, 7)))
def test_any_product(case):
    semiring, a, b, _ = case
    check(semiring, np.array(a), np.array(b))


def test_options():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(5, 7)), rng.normal(size=(7, 3))
    for product in (tg.matmul, tgj.matmul, jitted):
        check("min_plus", a, b, product, argmax_offset=100)
        check("max_mul", a, b, product, threads=2)


def test_views_inside_jit():
    """XLA hands over row-major arrays, whatever became of the views before."""
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(20, 30)), rng.normal(size=(40, 20))
    got = jax.jit(lambda a, b: tg.matmul(a[::-2, 3:].T, b[:10].T[::2]))(a, b)
    oracle.assert_same(got, oracle.product("max_plus", a[::-2, 3:].T, b[:10].T[::2])[0])


def test_one_call():
    a, b = jnp.ones((3, 4)), jnp.ones((4, 5))
    assert calls(tg.matmul, a, b) == (1, 0)
    assert calls(lambda a, b: tg.matmul(a, b, return_argmax=True), a, b) == (1, 0)


def test_without_jit():
    a, b = np.arange(12.0).reshape(3, 4), np.ones((4, 5))
    with jax.disable_jit():
        check("min_plus", a, b, jitted)
        grads = jax.grad(lambda a, b: tg.matmul(a, b).sum(), (0, 1))(jnp.asarray(a), jnp.asarray(b))
    assert [x.shape for x in grads] == [a.shape, b.shape]


def test_inside_loops_and_branches():
    rng = np.random.default_rng(3)
    a = rng.integers(0, 50, (6, 6)).astype(np.float32)
    expected = a
    for _ in range(3):
        expected = oracle.product("min_plus", expected, a)[0]

    def step(d, _):
        return tg.matmul(d, a_, semiring="min_plus"), None

    a_ = jnp.asarray(a)
    oracle.assert_same(jax.lax.scan(step, a_, length=3)[0], expected)
    oracle.assert_same(jax.lax.fori_loop(0, 3, lambda _, d: step(d, _)[0], a_), expected)
    chosen = jax.jit(lambda p: jax.lax.cond(p, lambda: tg.matmul(a_, a_), lambda: a_))
    oracle.assert_same(chosen(True), oracle.product("max_plus", a, a)[0])
    oracle.assert_same(chosen(False), a)


def test_shapes_without_computing():
    wanted = jax.eval_shape(
        lambda a, b: tg.matmul(a, b, return_argmax=True),
        jax.ShapeDtypeStruct((2, 3, 4), "bfloat16"),
        jax.ShapeDtypeStruct((4, 5), "bfloat16"),
    )
    assert (wanted.values.shape, wanted.values.dtype) == ((2, 3, 5), "bfloat16")
    assert (wanted.argmax.shape, wanted.argmax.dtype) == ((2, 3, 5), "int32")


def test_an_exported_program_can_be_called():
    export = importlib.import_module("jax.export")
    a, b = jnp.arange(12.0).reshape(3, 4), jnp.ones((4, 5))
    allowed = [
        export.DisabledSafetyCheck.custom_call(name)
        for name in ("tropical_gemm_matmul", "tropical_gemm_matmul_backward")
    ]
    program = export.export(jax.jit(tg.matmul), disabled_checks=allowed)(a, b)
    oracle.assert_same(program.call(a, b), tg.matmul(np.asarray(a), np.asarray(b)))


def test_threads_that_call_at_the_same_time():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(4, 100, 80)), rng.normal(size=(80, 60))
    expected = oracle.product("max_plus", a, b)[0]
    x, y = jnp.asarray(a), jnp.asarray(b)
    results = []

    def work():
        for _ in range(5):
            results.append(jitted(x, y))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20
    for got in results:
        oracle.assert_same(got, expected)


def test_donated_operands():
    rng = np.random.default_rng(5)
    a = rng.normal(size=(16, 16))
    x, y = jnp.asarray(a), jnp.asarray(a.T)
    got = jax.jit(tg.matmul, donate_argnums=0)(x, y)  # the result may take x's place
    oracle.assert_same(got, oracle.product("max_plus", a, a.T)[0])
    if x.is_deleted():
        with pytest.raises(ValueError, match=r"a is a jax\.Array that was deleted or donated"):
            tg.matmul(x, y)
    y.delete()
    with pytest.raises(ValueError, match=r"b is a jax\.Array that was deleted or donated"):
        tg.matmul(got, y)


# The same texts as for NumPy arrays, when the function is traced.
REFUSED = {
    "K differs": ((3, 4), (5, 2), "float32", "float32", {}),
    "vector": ((3,), (4, 5), "float32", "float32", {}),
    "batches": ((2, 3, 4), (3, 4, 5), "float32", "float32", {}),
    "no axes": ((), (4, 5), "float32", "float32", {}),
    "too many axes": ((1,) * 60, (1, 1), "float32", "float32", {}),
    "mixed": ((3, 4), (4, 5), "float32", "int32", {}),
    "unsigned": ((3, 4), (4, 5), "uint8", "uint8", {}),
    "complex": ((3, 4), (4, 5), "complex64", "complex64", {}),
    "bool": ((3, 4), (4, 5), "bool", "bool", {}),
    "or_and": ((3, 4), (4, 5), "float32", "float32", {"semiring": "or_and"}),
    "semiring": ((3, 4), (4, 5), "float32", "float32", {"semiring": "plus_times"}),
    "semiring's type": ((3, 4), (4, 5), "float32", "float32", {"semiring": 3}),
    "threads": ((3, 4), (4, 5), "float32", "float32", {"threads": 0}),
    "threads' type": ((3, 4), (4, 5), "float32", "float32", {"threads": 1.5}),
    "offset without argmax": ((3, 4), (4, 5), "float32", "float32", {"argmax_offset": 3}),
    "negative offset": (
        (3, 4), (4, 5), "float32", "float32", {"argmax_offset": -1, "return_argmax": True},
    ),
    "large offset": (
        (3, 4), (4, 5), "float32", "float32", {"argmax_offset": 2**31 - 2, "return_argmax": True},
    ),
    "offset's type": ((3, 4), (4, 5), "float32", "float32", {"argmax_offset": 1.0}),
    "return_argmax": ((3, 4), (4, 5), "float32", "float32", {"return_argmax": 1}),
    "accumulate": ((3, 4), (4, 5), "float32", "float32", {"accumulate": True}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_numpy_arrays_hear(name):
    *operands, options = REFUSED[name]
    a, b = (np.ones(shape, dtype) for shape, dtype in zip(operands[:2], operands[2:], strict=True))
    with pytest.raises((TypeError, ValueError)) as expected:
        tg.matmul(a, b, **options)
    for call in (tg.matmul, lambda a, b, **o: jax.jit(lambda a, b: tg.matmul(a, b, **o))(a, b)):
        with pytest.raises(expected.type) as got:
            call(jnp.asarray(a), jnp.asarray(b), **options)
        assert str(got.value).splitlines()[0] == str(expected.value)


def test_what_jax_arrays_cannot():
    a = jnp.ones((3, 3))
    for call in (tg.matmul, tgj.matmul):
        with pytest.raises(TypeError, match=r"out is of type .*immutable"):
            call(a, a, out=a)
        with pytest.raises(TypeError, match=r"out is of type .*immutable"):
            call(a, a, out=(a, a), accumulate=True)
        with pytest.raises(ValueError, match="stream is 1, expected None: XLA says"):
            call(a, a, stream=1)
        with pytest.raises(TypeError, match=r"jax.* and b is of type numpy\.ndarray"):
            call(a, np.ones((3, 3)))
    with pytest.raises(
        TypeError, match=r"a is of type numpy\.ndarray, expected a jax\.Array; use jax\.numpy"
    ):
        tgj.matmul(np.ones((3, 3)), np.ones((3, 3)))
    with pytest.raises(ValueError, match="stream is 1, expected None"):
        tg.matmul_backward(a, a.astype("int32"), a, a, stream=1)
    other = jax.device_put(a, jax.devices("cpu")[1])
    on_cpu = jax.device_put(a, jax.devices("cpu")[0])
    with pytest.raises(ValueError, match="a is on the CPU and b is on cpu:1; all arrays of a call"):
        tg.matmul(on_cpu, other)
    with pytest.raises(TypeError, match="d is a JAX tracer: inside jit, grad and vmap there are matmul"):
        jax.jit(lambda a: tg.closure(a, semiring="min_plus"))(a)


def test_64_bits_are_asked_for():
    wide = jnp.ones((3, 3), "float64")
    assert tg.matmul(wide, wide).dtype == "float64"
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(TypeError, match=r"a has dtype float64, .*jax_enable_x64"):
        tg.matmul(wide, wide)


def test_no_fitting_jax(monkeypatch):
    """No jax, an old one, a build without the handlers, one for a newer interface of XLA's."""

    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    with monkeypatch.context() as patch:
        patch.setattr(_handlers, "import_module", missing)
        with pytest.raises(ImportError, match=r"needs jax 0\.6\.2 or newer, which is not installed"):
            _handlers.register()
    with monkeypatch.context() as patch:
        patch.setattr(_core, "jax_custom_calls", lambda: None)
        with pytest.raises(ImportError, match=r"no custom calls for JAX.*pip install"):
            _handlers.register()
    for old in ("0.4.30", "0.6.1", "0.5.3.dev20250101"):
        with monkeypatch.context() as patch:
            patch.setattr(jax, "__version__", old)
            with pytest.raises(ImportError, match=rf"needs jax 0\.6\.2 or newer, this is jax {old}"):
                _handlers.register()
    with pytest.raises(ImportError, match=r"for version 0\.99 of XLA's FFI.*upgrade jax"):
        _handlers._check_interface((0, 99), jax.ffi.include_dir())
    _handlers.register()  # once more is no harm


def test_debug_nans():
    plus, minus = jnp.full((1, 1), jnp.inf), jnp.full((1, 1), -jnp.inf)
    with jax.debug_nans(True):
        assert tg.matmul(plus, plus).tolist() == [[np.inf]]
        with pytest.raises(FloatingPointError, match="encountered in tropical_gemm_matmul"):
            tg.matmul(plus, minus)
