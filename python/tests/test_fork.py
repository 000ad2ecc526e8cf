"""Processes made out of one that has used the library."""

import multiprocessing

import pytest
from children import run

pytestmark = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork")


def test_a_forked_child_computes_after_the_parent_used_threads():
    out = run(
        """
        import multiprocessing, numpy as np, tropical_gemm as tg

        x = np.arange(300.0 * 300).reshape(300, 300) % 17

        def child(queue):
            queue.put((tg.matmul(x, x, threads=4), tg.info()["threads"]))

        expected = tg.matmul(x, x, threads=4)
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        got, threads = queue.get(timeout=60)
        process.join(60)
        assert process.exitcode == 0
        assert threads == 1
        assert (got == expected).all()
        assert (tg.matmul(x, x, threads=4) == expected).all()
        print("right")
        """
    )
    assert out == ["right"]


def test_a_fork_while_another_thread_computes():
    out = run(
        """
        import os, threading, numpy as np, tropical_gemm as tg

        x = np.arange(200.0 * 200).reshape(200, 200) % 17
        expected = tg.matmul(x, x)
        batch = np.broadcast_to(x, (400, 200, 200))
        stop = False

        def compute(**options):
            while not stop:
                tg.matmul(batch, x, **options)
                tg.closure(x, semiring="min_plus")

        for options in ({}, {"return_argmax": True}):
            threading.Thread(target=compute, kwargs=options, daemon=True).start()
        failed = 0
        for _ in range(40):
            child = os.fork()
            if child == 0:
                got = tg.matmul(x, x, return_argmax=True)
                argmax = (x[:, :, None] + x[None]).argmax(1)
                os._exit(not ((got.values == expected).all() and (got.argmax == argmax).all()))
            failed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
        stop = True
        print(failed)
        """
    )
    assert out == ["0"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools(method, tmp_path):
    # Spawned processes import the program, so it has to be a file.
    (tmp_path / "pooled.py").write_text(
        "import numpy as np, tropical_gemm as tg\n"
        "def work(seed):\n"
        "    x = np.random.default_rng(seed).normal(size=(120, 120))\n"
        "    got = tg.matmul(x, x, return_argmax=True)\n"
        "    return got.values, got.argmax, tg.closure(-abs(x), semiring='max_plus')\n"
    )
    out = run(
        f"""
        import sys; sys.path.insert(0, {str(tmp_path)!r})
        import multiprocessing, pooled

        expected = [pooled.work(seed) for seed in range(16)]  # the parent's threads run
        with multiprocessing.get_context({method!r}).Pool(4) as pool:
            got = pool.map(pooled.work, range(16))
        print(all((a == b).all() for g, e in zip(got, expected) for a, b in zip(g, e)))
        """
    )
    assert out == ["True"]


def test_a_fork_after_torch_used_its_threads():
    pytest.importorskip("torch")
    # No work of torch's own in the child: torch 2.13 hangs there in x.clone().
    out = run(
        """
        import os, numpy as np, torch, tropical_gemm.torch as tgt

        x = torch.arange(100 * 100.0).reshape(100, 100) % 17
        (torch.ones(1000, 1000) + 1).sum()
        expected = tgt.matmul(x, x).numpy()
        child = os.fork()
        if child == 0:
            c, argmax = tgt.matmul(x, x, return_argmax=True)
            tgt.matmul_backward(c, argmax, x, x)
            os._exit(not np.array_equal(c.numpy(), expected))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        seconds=60,
    )
    assert out == ["0"]
