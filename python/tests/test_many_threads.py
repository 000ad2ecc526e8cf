"""64 threads that call at once, of every front end, on the same arrays: right bits, no deadlock."""

from importlib.util import find_spec

import pytest
from children import run

PROGRAM = """
import sys, threading
import numpy as np
import tropical_gemm as tg

rng = np.random.default_rng(0)
x, y = rng.normal(size=(2, 70, 70)).astype(np.float32)
distances = rng.integers(1, 50, (70, 70)).astype(np.float64)
emission = rng.normal(size=(3, 40, 12)).astype(np.float32)
candidates = x[:, :, None] + y[None]
values, argmax = candidates.max(1), candidates.argmax(1)
closed = distances.copy()
np.fill_diagonal(closed, 0)
for k in range(70):
    closed = np.minimum(closed, closed[:, k : k + 1] + closed[k])
grad_x, grad_y = np.zeros((2, 70, 70), np.float32)
np.add.at(grad_x, (np.arange(70)[:, None], argmax), 1)
np.add.at(grad_y, (argmax, np.arange(70)[None]), 1)
paths, scores = tg.viterbi(emission, x[:12, :12])

def same(*pairs):
    for got, expected in zip(pairs[::2], pairs[1::2], strict=True):
        got = np.asarray(got)
        assert got.dtype.kind == expected.dtype.kind and got.tobytes() == expected.astype(got.dtype).tobytes()

def product():
    same(tg.matmul(x, y), values)

def with_argmax():
    got = tg.matmul(x, y, return_argmax=True, threads=3)
    same(got.values, values, got.argmax, argmax)

def backward():
    a, b = tg.matmul_backward(np.ones_like(x), argmax.astype(np.int32), x, y)
    same(a, grad_x, b, grad_y)

def closure():
    same(tg.closure(distances, semiring="min_plus"), closed)

def viterbi():
    got = tg.viterbi(emission, x[:12, :12])
    same(got[0], paths, got[1], scores)

def einsum():
    same(tg.einsum("ij,jk->ki", x, y, semiring="max_plus"), values.T.copy())

def counts():
    same(tg.count_matmul(x, y, semiring="max_plus")[0], values)

calls = [product, with_argmax, backward, closure, viterbi, einsum, counts]
libraries = sys.argv[1:]

if "torch" in libraries:
    import torch

    tx, ty = torch.from_numpy(x), torch.from_numpy(y)

    def torch_product():
        got = tg.matmul(tx, ty, return_argmax=True)
        same(got.values, values, got.argmax, argmax)

    def torch_gradient():
        a, b = tx.clone().requires_grad_(), ty.clone().requires_grad_()
        tg.matmul(a, b).sum().backward()
        same(a.grad, grad_x, b.grad, grad_y)

    calls += [torch_product, torch_gradient]

if "jax" in libraries:
    import jax

    jx, jy = jax.numpy.asarray(x), jax.numpy.asarray(y)
    compiled = jax.jit(lambda a, b: tg.matmul(a, b, return_argmax=True))
    gradient = jax.grad(lambda a, b: tg.matmul(a, b).sum(), (0, 1))

    def jax_product():
        same(tg.matmul(jx, jy), values)

    def jax_compiled():
        got = compiled(jx, jy)
        same(got[0], values, got[1], argmax)

    def jax_gradient():
        a, b = gradient(jx, jy)
        same(a, grad_x, b, grad_y)

    calls += [jax_product, jax_compiled, jax_gradient]

failures = []
barrier = threading.Barrier(64)

def work(first):
    try:
        barrier.wait()
        for turn in range(len(calls)):
            calls[(first + turn) % len(calls)]()
    except BaseException as error:
        failures.append(repr(error))

threads = [threading.Thread(target=work, args=(i,)) for i in range(64)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures[:3]
print("right")
"""


@pytest.mark.parametrize("libraries", ["", "torch", "jax", "torch jax"])
def test_64_threads_at_once(libraries):
    missing = [name for name in libraries.split() if find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {missing}")
    assert run(f"import sys; sys.argv[1:] = {libraries.split()}\n{PROGRAM}") == ["right"]
