"""Torch tensors in host memory come back as torch tensors."""

import importlib
import inspect

import cases
import numpy as np
import oracle
import pytest
import tropical_gemm as tg

torch = pytest.importorskip("torch")

PAIRS = [(s, d) for s, d in oracle.PAIRS if s in ("max_plus", "min_mul", "or_and")]


def to_torch(x):
    x = np.array(x, order="C")
    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


def to_numpy(x):
    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy().view(oracle.DTYPES["bfloat16"])
    return x.numpy()


@pytest.mark.parametrize(("semiring", "dtype"), PAIRS)
def test_products(semiring, dtype):
    rng = np.random.default_rng(0)
    a, b = (cases.values(rng, "uniform", semiring, dtype, s) for s in ((2, 9, 17), (17, 11)))
    values, argmax = oracle.product(semiring, a, b)
    x, y = to_torch(a), to_torch(b)
    got = tg.matmul(x, y, semiring=semiring, return_argmax=True)
    assert isinstance(got.values, torch.Tensor)
    assert (got.values.dtype, got.argmax.dtype) == (x.dtype, torch.int32)
    oracle.assert_same(to_numpy(got.values), values)
    oracle.assert_same(got.argmax.numpy(), argmax, "argmax")
    oracle.assert_same(to_numpy(tg.matmul(x, y, semiring=semiring)), values)
    transposed = tg.matmul(y.T, x.mT, semiring=semiring)
    oracle.assert_same(to_numpy(transposed), np.swapaxes(values, -1, -2).copy())


def test_the_same_signatures():
    front = importlib.import_module("tropical_gemm.torch")
    for name in ("matmul", "matmul_backward"):
        ours, theirs = (inspect.signature(getattr(m, name)).parameters.values() for m in (tg, front))
        assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs]


def test_views():
    x = torch.arange(24.0).reshape(4, 6)
    y = torch.ones(1, 1).expand(6, 5)
    for a, b in [
        (x[::2, ::3], y[:2]),
        (x.T, x),
        (x.unsqueeze(0).expand(3, 4, 6), y),
        (x[0], y),
        (x, y[:, 0]),
        (x[0], x[1]),
    ]:
        got = tg.matmul(a, b)
        expected = oracle.product("max_plus", a.numpy(), b.numpy())[0]
        assert isinstance(got, torch.Tensor)
        assert tuple(got.shape) == np.shape(expected)
        oracle.assert_same(got.numpy(), expected)


def test_lazy_views_are_resolved():
    x = torch.randn(4, 4, dtype=torch.complex64)
    a = torch.conj(x).imag  # negated only when it is read
    oracle.assert_same(
        tg.matmul(a, a).numpy(), oracle.product("max_plus", a.clone().numpy(), a.clone().numpy())[0]
    )


def test_empty_and_scalar_shapes():
    assert tg.matmul(torch.empty(0, 3), torch.empty(3, 2)).shape == (0, 2)
    assert (tg.matmul(torch.empty(2, 0), torch.empty(0, 2)) == -torch.inf).all()
    assert tg.matmul(torch.ones(3), torch.ones(3)).shape == ()


def test_out():
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    expected, indices = oracle.product("max_plus", a.numpy(), b.numpy())
    c, argmax = torch.empty(3, 5), torch.empty(5, 3, dtype=torch.int32).T
    version = c._version
    got = tg.matmul(a, b, out=(c, argmax))
    assert got.values is c
    assert got.argmax is argmax
    assert c._version > version  # autograd notices
    oracle.assert_same(c.numpy(), expected)
    oracle.assert_same(argmax.numpy(), indices)
    assert tg.matmul(a, b, out=c, accumulate=True) is c
    oracle.assert_same(c.numpy(), expected)


def test_bad_out():
    a = torch.ones(3, 3)
    bad = {
        "shape": torch.zeros(3, 4),
        "dtype": torch.zeros(3, 3, dtype=torch.float64),
        "stride 0": torch.zeros(1, 3).expand(3, 3),
        "overlap": a,
    }
    for name, out in bad.items():
        before = out.clone()
        with pytest.raises((ValueError, TypeError), match="out"):
            tg.matmul(a, a, out=out)
        assert torch.equal(out, before), name


def test_backward():
    a, b = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [0.0]])
    c, argmax = tg.matmul(a, b, return_argmax=True)
    for indices in (argmax, argmax.long()):
        got = tg.matmul_backward(torch.full_like(c, 2), indices, a, b)
        assert isinstance(got.grad_a, torch.Tensor)
        assert got.grad_a.tolist() == [[2, 0]]
        assert got.grad_b.tolist() == [[2], [0]]


def test_other_layouts_and_devices_are_refused():
    a = torch.eye(3)
    with pytest.raises(TypeError, match=r"a .*sparse"):
        tg.matmul(a.to_sparse(), a)
    with pytest.raises(ValueError, match=r"b .*meta"):
        tg.matmul(a, a.to("meta"))
    made = tg.matmul(a.to("meta"), a.to("meta"), return_argmax=True)
    assert (made.values.device.type, made.argmax.dtype) == ("meta", torch.int32)
    with pytest.raises(TypeError, match="uint8"):
        tg.matmul(a.to(torch.uint8), a.to(torch.uint8))
    with pytest.raises(TypeError, match="complex64"):
        tg.matmul(a.to(torch.complex64), a.to(torch.complex64))
