"""Threads: the caller's and the library's."""

import threading
import time

import numpy as np
import oracle
import tropical_gemm as tg
from children import run


def long_product(seconds=0.3):
    """A call of at least that length, long without much memory: a batch that repeats its matrices."""
    x = np.ones((64, 64), np.float32)
    batch = 64
    while True:
        a = np.broadcast_to(x, (batch, 64, 64))
        out = np.empty((batch, 64, 64), np.float32)
        start = time.perf_counter()
        tg.matmul(a, x, out=out, threads=1)
        if time.perf_counter() - start > seconds or batch >= 1 << 16:
            return a, x, out
        batch *= 4


def test_the_interpreter_runs_on_meanwhile():
    a, x, out = long_product()
    # Python's threads take turns of this length; a call that held the lock would stop the count altogether.
    worker = threading.Thread(target=tg.matmul, args=(a, x), kwargs={"out": out, "threads": 1})
    turns = 0
    worker.start()
    while worker.is_alive():
        time.sleep(0.001)
        turns += 1
    worker.join()
    assert turns > 20


def test_calls_from_many_threads():
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(size=(40, 50)), rng.normal(size=(50, 60))) for _ in range(8)]
    expected = [oracle.product("max_plus", a, b) for a, b in pairs]
    failures = []

    def work(index):
        try:
            for _ in range(20):
                got = tg.matmul(*pairs[index], return_argmax=True, threads=1 + index % 3)
                oracle.assert_same(got.values, expected[index][0])
                oracle.assert_same(got.argmax, expected[index][1])
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(len(pairs))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_any_number_of_threads_gives_the_same_bits():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(3, 130, 70)).astype(np.float32), rng.normal(size=(70, 150)).astype(np.float32)
    first = tg.matmul(a, b, return_argmax=True, threads=1)
    for threads in (None, 2, 3, 7, 64):
        got = tg.matmul(a, b, return_argmax=True, threads=threads)
        oracle.assert_same(got.values, first.values)
        oracle.assert_same(got.argmax, first.argmax)


def test_the_instruction_set_can_be_chosen_at_start():
    program = "import tropical_gemm as tg; print(tg.info()['isa'])"
    for isa in tg.info()["isas"]:
        assert run(program, TROPICAL_GEMM_ISA=isa) == [isa]
