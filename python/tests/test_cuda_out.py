"""out, accumulate and argmax_offset on the GPU, and what is refused: as on the CPU, with nothing written."""

import cases
import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from gpu import needs_gpu, to_gpu, to_numpy, torch

pytestmark = needs_gpu


@pytest.mark.parametrize(("semiring", "dtype"), oracle.PAIRS)
def test_accumulate(semiring, dtype):
    rng = np.random.default_rng(0)
    for fill in ("uniform", "few", "nans", "masked"):
        for m, k, n in ((9, 20, 13), (70, 65, 130), (5, 0, 4)):
            a, b, c = (cases.values(rng, fill, semiring, dtype, s) for s in ((m, k), (k, n), (m, n)))
            arg = rng.integers(-1, 50, (m, n)).astype(np.int32)
            x, y, z, i = (to_gpu(v) for v in (a, b, c, arg))
            alone = z.clone()
            tg.matmul(a, b, semiring=semiring, out=(c, arg), accumulate=True, argmax_offset=7)
            got = tg.matmul(x, y, semiring=semiring, out=(z, i), accumulate=True, argmax_offset=7)
            assert got.values is z
            assert got.argmax is i
            oracle.assert_same(to_numpy(z), c)
            oracle.assert_same(to_numpy(i), arg, "argmax")
            assert tg.matmul(x, y, semiring=semiring, out=alone, accumulate=True) is alone
            oracle.assert_same(to_numpy(alone), c)


def test_k_in_pieces():
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-5, 5, s).astype(np.float32) for s in ((40, 300), (300, 50)))
    expected = tg.matmul(a, b, return_argmax=True)
    x, y = to_gpu(a), to_gpu(b)
    c = torch.full((40, 50), -torch.inf, device="cuda")
    arg = torch.full((40, 50), -1, dtype=torch.int32, device="cuda")
    for k in range(0, 300, 77):
        tg.matmul(x[:, k : k + 77], y[k : k + 77], out=(c, arg), accumulate=True, argmax_offset=k)
    oracle.assert_same(to_numpy(c), expected.values)
    oracle.assert_same(to_numpy(arg), expected.argmax)


@pytest.mark.parametrize("layout", ["transposed", "step", "columns"])
def test_strided_outputs(layout):
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((33, 70), (70, 41)))
    expected = tg.matmul(a, b, return_argmax=True)
    memory = [torch.full((90, 90), 7, dtype=d, device="cuda") for d in (torch.float32, torch.int32)]
    view = {
        "transposed": lambda m: m[:41, :33].T,
        "step": lambda m: m[:66:2, 1:83:2],
        "columns": lambda m: m[20:53, 5:46],
    }[layout]
    out = tuple(view(m) for m in memory)
    tg.matmul(to_gpu(a), to_gpu(b), out=out)
    for m, o, e in zip(memory, out, expected, strict=True):
        oracle.assert_same(to_numpy(o.contiguous()), e)
        o.fill_(7)
        assert (m == 7).all(), "something else was written"


def test_autograd_notices():
    a = torch.ones(3, 3, device="cuda")
    out = torch.empty(3, 3, device="cuda")
    version = out._version
    tg.matmul(a, a, out=out)
    assert out._version > version


def refusals():
    """(name, call of the operands in either place)."""

    def ones(*shape, dtype=torch.float32, device="cuda"):
        return torch.ones(shape, dtype=dtype, device=device)

    def call(a=(3, 4), b=(4, 5), out=None, **options):
        def run(device):
            def made(x):
                return x(device) if callable(x) else ones(*x, device=device)

            x, y = made(a), made(b)
            if out is not None:
                options["out"] = x if out == "a" else made(out)
            before = [(t, t.clone()) for t in (x, y) if t.layout == torch.strided]
            try:
                tg.matmul(x, y, **options)
            finally:
                assert all(torch.equal(t, u) for t, u in before)

        return run

    return {
        "K differs": call(b=(5, 5)),
        "batches": call(a=(2, 3, 4), b=(3, 4, 5)),
        "no axes": call(a=()),
        "dtypes differ": call(b=lambda d: ones(4, 5, dtype=torch.float64, device=d)),
        "dtype unknown": call(*[lambda d: ones(4, 4, dtype=torch.uint8, device=d)] * 2),
        "complex": call(*[lambda d: ones(4, 4, dtype=torch.complex64, device=d)] * 2),
        "bool": call(*[lambda d: ones(4, 4, dtype=torch.bool, device=d)] * 2),
        "semiring": call(semiring="plus_times"),
        "or_and": call(semiring="or_and"),
        "out shape": call(out=(3, 4)),
        "out dtype": call(out=lambda d: ones(3, 5, dtype=torch.float64, device=d)),
        "out stride 0": call(out=lambda d: ones(1, 5, device=d).expand(3, 5)),
        "out overlaps": call(a=(4, 4), b=(4, 4), out="a"),
        "accumulate without out": call(accumulate=True),
        "offset": call(argmax_offset=-1, return_argmax=True),
        "offset without argmax": call(argmax_offset=3),
        "threads": call(threads=0),
        "requires grad": call(
            a=lambda d: ones(3, 4, device=d).requires_grad_(), out=lambda d: ones(3, 5, device=d)
        ),
        "sparse": call(a=lambda d: ones(3, 4, device=d).to_sparse(), b=(4, 5)),
    }


@pytest.mark.parametrize("name", refusals())
def test_refusals_are_those_of_the_cpu(name):
    run = refusals()[name]
    told = []
    for device in ("cpu", "cuda"):
        with pytest.raises((ValueError, TypeError, RuntimeError)) as caught:
            run(device)
        told.append((caught.type, str(caught.value)))
    assert told[0] == told[1]


def test_two_places():
    a, b = torch.ones(3, 3, device="cuda:0"), torch.ones(3, 3)
    with pytest.raises(ValueError, match="a is on cuda:0 and b is on the CPU"):
        tg.matmul(a, b)
    with pytest.raises(ValueError, match="a is on the CPU and b is on cuda:0"):
        tg.matmul(b, a)
    with pytest.raises(ValueError, match="a is on cuda:0 and out is on the CPU"):
        tg.matmul(a, a, out=torch.zeros(3, 3))
    with pytest.raises(TypeError, match=r"torch\.Tensor.*numpy\.ndarray"):
        tg.matmul(a, b.numpy())


def test_more_than_there_is():
    _, total = torch.cuda.mem_get_info()
    n = int((total // 4) ** 0.5) + 4096
    a, b = torch.ones(n, 1, device="cuda"), torch.ones(1, n, device="cuda")
    with pytest.raises((MemoryError, torch.OutOfMemoryError)):
        tg.matmul(a, b)
    assert (tg.matmul(a[:3], b[:, :3]) == 2).all()
