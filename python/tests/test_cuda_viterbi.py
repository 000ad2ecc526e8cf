"""Trellises on a GPU against the CPU: equal bits."""

import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from gpu import needs_gpu, to_gpu, to_numpy
from test_viterbi import scores

torch = pytest.importorskip("torch")
pytestmark = needs_gpu
FLOATS = ("float32", "float64", "float16", "bfloat16")


def same(got, expected):
    for part, x, y in zip(expected._fields, got, expected, strict=True):
        assert x.device.type == "cuda", part
        oracle.assert_same(to_numpy(x), np.asarray(y).astype(to_numpy(x).dtype), part)


@pytest.mark.filterwarnings("ignore:log_transition looks like")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["normal", "ties", "impossible", "nan", "infinite"])
@pytest.mark.parametrize(
    ("batch", "steps", "states", "each"),
    [
        ((), 0, 3, False),
        ((), 1, 1, False),
        ((3,), 7, 5, True),
        ((5,), 20, 60, False),
        ((2, 2), 9, 130, False),
        ((5,), 6, 33, True),
        ((37,), 8, 300, False),
        ((), 5, 1800, False),
    ],
)
def test_viterbi(dtype, kind, batch, steps, states, each):
    rng = np.random.default_rng(steps * states)
    e = scores(rng, (*batch, steps, states), dtype, kind)
    a = scores(rng, (*batch, max(steps - 1, 0), states, states) if each else (states, states), dtype, kind)
    first, last = scores(rng, (states,), dtype, kind), scores(rng, (states,), dtype, "normal")
    lengths = rng.integers(0, steps + 1, batch)
    for ends in (None, lengths):
        expected = tg.viterbi(e, a, first, last, lengths=ends)
        there = None if ends is None else torch.as_tensor(ends).cuda()
        same(tg.viterbi(to_gpu(e), to_gpu(a), to_gpu(first), to_gpu(last), lengths=there), expected)
        same(tg.viterbi(to_gpu(e), to_gpu(a), to_gpu(first), to_gpu(last), lengths=ends), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scan(dtype):
    torch.full((1 << 24,), torch.nan, device="cuda")  # memory that the call may get holds no zeros
    rng = np.random.default_rng(1)
    e, a = scores(rng, (3, 500, 7), dtype, "ties"), scores(rng, (7, 7), dtype, "ties")
    same(tg.viterbi(to_gpu(e), to_gpu(a), method="scan"), tg.viterbi(e, a))


def test_lengths_on_the_device_are_clamped():
    rng = np.random.default_rng(2)
    e, a = scores(rng, (3, 5, 4), "float32", "normal"), scores(rng, (4, 4), "float32", "normal")
    same(
        tg.viterbi(to_gpu(e), to_gpu(a), lengths=torch.tensor([-3, 9, 2]).cuda()),
        tg.viterbi(e, a, lengths=[0, 5, 2]),
    )


@pytest.mark.parametrize("states", [16, 200])
def test_captured_and_replayed(states):
    rng = np.random.default_rng(3)
    e, a = (to_gpu(scores(rng, shape, "float32", "normal")) for shape in ((4, 20, states), (states, states)))
    lengths = torch.tensor([20, 3, 0, 11]).cuda()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        tg.viterbi(e, a, lengths=lengths)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = tg.viterbi(e, a, lengths=lengths)
    for _ in range(10):
        fresh = scores(rng, (4, 20, states), "float32", "impossible")
        e.copy_(to_gpu(fresh))
        graph.replay()
        same(made, tg.viterbi(fresh, to_numpy(a), lengths=to_numpy(lengths)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("blank", [0, 2])
def test_forced_align(dtype, blank):
    rng = np.random.default_rng(4)
    x = scores(rng, (6, 40, 5), dtype, "ties")
    targets = rng.choice([c for c in range(5) if c != blank], (6, 9)).astype(np.int32)
    inputs, lengths = np.array([40, 12, 5, 0, 0, 33]), np.array([9, 9, 9, 0, 4, 1])
    expected = tg.forced_align(x, targets, inputs, lengths, blank)
    there = [torch.as_tensor(n).cuda() for n in (inputs, lengths)]
    same(tg.forced_align(to_gpu(x), to_gpu(targets), *there, blank), expected)
    same(tg.forced_align(to_gpu(x), to_gpu(targets), inputs, lengths, blank), expected)


def test_targets_on_the_device_are_not_inspected():
    x = torch.zeros(3, 4, 3, device="cuda")
    got = tg.forced_align(x, torch.tensor([[1], [0], [7]], device="cuda"))
    assert got.labels[1:].eq(-1).all()
    assert got.scores[1:].eq(-torch.inf).all()
    assert got.labels[0].max() == 1


def test_jax_and_cupy():
    rng = np.random.default_rng(5)
    e, a = scores(rng, (2, 6, 5), "float32", "ties"), scores(rng, (5, 5), "float32", "ties")
    expected = tg.viterbi(e, a, lengths=[6, 2])
    jax = pytest.importorskip("jax")
    got = tg.viterbi(jax.numpy.asarray(e), jax.numpy.asarray(a), lengths=[6, 2])
    np.testing.assert_array_equal(np.asarray(got.paths), expected.paths)
    np.testing.assert_array_equal(np.asarray(got.scores), expected.scores)
    cupy = pytest.importorskip("cupy")
    got = tg.viterbi(cupy.asarray(e), cupy.asarray(a), lengths=[6, 2])
    np.testing.assert_array_equal(got.paths.get(), expected.paths)
