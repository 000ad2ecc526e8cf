"""Calls that take long on few data; as a program, it makes those asked for and tells when Ctrl-C ended them.

Asked by ``NAME`` on a line of standard input it prints ``begins`` out of the call, and then the time of the
KeyboardInterrupt on the system's monotonic clock, or ``finished``.
"""

import importlib
import signal
import sys
import threading
import time

import numpy as np
import tropical_gemm as tg

CALLS = {}


def call(make):
    CALLS[make.__name__] = make
    return make


def repeated(x, *lead):
    """A batch of one matrix, without copies."""
    return np.broadcast_to(x, (*lead, *x.shape))


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


@call
def matmul():
    tg.matmul(repeated(ones(256, 16384), 8000), ones(16384, 256))


@call
def one_large_matmul():
    tg.matmul(ones(4096, 8192), ones(8192, 8192), threads=1)


@call
def small_matrices():
    x = repeated(ones(4, 4), 8_000_000)
    for _ in range(20):
        tg.matmul(x, x)


@call
def outer_product():
    x = repeated(ones(4096, 1), 30)
    for _ in range(20):
        tg.matmul(x, ones(1, 8192))


@call
def matmul_with_argmax():
    tg.matmul(repeated(ones(256, 16384), 8000), ones(16384, 256), return_argmax=True)


@call
def matmul_filtered():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(2048, 2048))
    tg.matmul(repeated(a, 100), a)


@call
def matmul_int64_that_saturates():
    x = np.full((2048, 2048), np.iinfo(np.int64).max // 2 + 7)
    tg.matmul(repeated(x, 50), x, return_argmax=True)


@call
def matmul_bool():
    x = np.random.default_rng(0).random((4096, 4096)) < 1e-4
    tg.matmul(repeated(x, 200), x, semiring="or_and")


@call
def matmul_float16_with_argmax():
    x = ones(1024, 1024, dtype=np.float16)
    tg.matmul(repeated(x, 200), x, return_argmax=True)


def backward_of(semiring):
    a, b = repeated(ones(1024, 512), 2000), ones(512, 1024)
    argmax = repeated(np.random.default_rng(0).integers(0, 512, (1024, 1024), np.int32), 2000)
    tg.matmul_backward(repeated(ones(1024, 1024), 2000), argmax, a, b, semiring=semiring, needs=(False, True))


@call
def backward():
    backward_of("max_plus")


@call
def backward_of_max_mul():
    backward_of("max_mul")


@call
def count_matmul():
    x = ones(1024, 1024, dtype=np.float64)
    tg.count_matmul(repeated(x, 100), x, semiring="max_plus")


@call
def closure():
    tg.closure(ones(6000, 6000, dtype=np.float64), semiring="min_plus")


@call
def closure_int32():
    tg.closure(ones(6000, 6000, dtype=np.int32), semiring="min_plus")


@call
def shortest_paths():
    tg.shortest_paths(np.random.default_rng(0).random((5000, 5000)), return_predecessors=True)


@call
def viterbi():
    steps = repeated(ones(512), 16, 20_000)
    tg.viterbi(steps, ones(512, 512))


@call
def viterbi_of_few_states():
    tg.viterbi(repeated(ones(2), 64, 2_000_000), ones(2, 2))


@call
def alignment():
    log_probs = repeated(-ones(8), 32, 40_000)
    targets = repeated(np.arange(4000) % 7 + 1, 32)
    tg.forced_align(log_probs, targets)


@call
def einsum():
    x = ones(400, 400)
    tg.einsum("ij,jk,kl,abk->ilab", x, x, x, repeated(ones(400, 400), 60), semiring="max_plus")


@call
def permute():
    from tropical_gemm import _core

    x = repeated(ones(1024, 1024), 600)
    for _ in range(20):
        _core.permute(x, [2, 1, 0], None, None)


@call
def torch_matmul():
    import torch

    a = torch.ones(256, 16384).expand(8000, 256, 16384)
    tg.matmul(a, torch.ones(16384, 256))


@call
def torch_backward():
    import torch

    a = torch.ones(1024, 64, requires_grad=True)
    c = tg.matmul(a.expand(100, 1024, 64), torch.ones(64, 1024))
    for _ in range(1000):
        c.sum().backward(retain_graph=True)


@call
def jax_matmul():
    import jax.numpy as jnp

    x = jnp.ones((1, 2048, 2048))
    tg.matmul(jnp.repeat(x, 40, 0), x)


def answer(name):
    library = name.partition("_")[0]
    if library in ("torch", "jax"):
        importlib.import_module(library)  # may fail in many ways where it is interrupted
    threading.Timer(0.3, print, ["begins"], {"flush": True}).start()
    try:
        CALLS[name]()
        print("finished", flush=True)
    except KeyboardInterrupt:
        now = time.monotonic()
        assert tg.matmul(np.ones(3), np.ones(3)) == 2, "the library goes on"
        print(now, flush=True)


if __name__ == "__main__":
    # A shell may have started the tests with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for line in sys.stdin:
        answer(line.strip())
