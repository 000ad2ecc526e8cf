"""The end of an interpreter while the library is at work: exit code 0, no message of a crash, in time."""

import textwrap

import pytest
from children import run

SETUP = """
import atexit, gc, sys, threading, time, numpy as np, tropical_gemm as tg

x = np.arange(64.0 * 64).reshape(64, 64) % 17
long = np.broadcast_to(np.ones((256, 4096), np.float32), (4000, 256, 4096))
other = np.ones((4096, 256), np.float32)
"""


def ends(program, **environment):
    """What it prints, in an interpreter that ends by itself soon."""
    return run(SETUP + textwrap.dedent(program), seconds=60, **environment)


# What crashes is a return from the library while Python takes itself apart: hence many short calls.
DAEMONS = """
def forever(call):
    while True:
        call()

def daemon(call):
    threading.Thread(target=forever, args=(call,), daemon=True).start()
"""


@pytest.mark.parametrize(
    "call",
    [
        "tg.matmul(long, other)",
        "tg.matmul(long, other, threads=1)",
        "tg.matmul(x, x)",
        "tg.matmul(x, x, return_argmax=True, threads=1)",
        "tg.closure(x, semiring='min_plus')",
        "tg.viterbi(np.zeros((300, 64)), x)",
        "tg.einsum('ij,jk,kl->il', x, x, x, semiring='max_plus')",
        "tg.matmul_backward(x, np.zeros((64, 64), np.int32), x, x)",
    ],
)
def test_daemon_threads_in_the_library(call):
    program = DAEMONS + f"for _ in range(4): daemon(lambda: {call})\ntime.sleep(0.3)\nprint('end')\n"
    assert ends(program) == ["end"]


def test_an_executor_that_nobody_joins():
    out = ends(
        """
        from concurrent.futures import ThreadPoolExecutor
        executor = ThreadPoolExecutor(4)
        futures = [executor.submit(tg.matmul, long[:200], other) for _ in range(8)]
        print("end")
        """
    )
    assert out == ["end"]


def test_calls_at_exit():
    out = ends(
        """
        atexit.register(lambda: print(tg.matmul(x, x, return_argmax=True).argmax.shape))
        """
    )
    assert out == ["(64,", "64)"]


@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_results_and_capsules_that_are_alive_at_the_end(library):
    if library != "numpy":
        pytest.importorskip(library)
    make = {
        "numpy": "x",
        "torch": "__import__('torch').from_numpy(x)",
        "jax": "__import__('jax').numpy.asarray(x, 'float32')",
    }[library]
    out = ends(
        f"""
        y = {make}
        result = tg.matmul(y, y, return_argmax=True)
        capsules = [result.values.__dlpack__(), y.__dlpack__()]
        sys.held = [result, capsules]
        sys.cycle = [result, capsules]
        sys.cycle.append(sys.cycle)
        print("end")
        """
    )
    assert out == ["end"]


def test_import_again():
    out = ends(
        """
        import importlib
        before = tg.matmul(x, x)
        importlib.reload(tg)
        print((tg.matmul(x, x) == before).all())
        for name in [name for name in sys.modules if name.startswith("tropical_gemm")]:
            del sys.modules[name]
        del tg
        gc.collect()
        import tropical_gemm as again
        print((again.matmul(x, x) == before).all())
        """
    )
    assert out == ["True", "True"]


def test_a_subinterpreter_works_or_says_that_it_cannot():
    out = ends(
        """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        made = interpreters.create()
        code = '''if True:
            try:
                import tropical_gemm as tg, numpy as np
                assert (tg.matmul(np.ones((2, 2)), np.ones((2, 2))) == 2).all()
            except ImportError as error:
                assert str(error)
        '''
        failed = interpreters.run_string(made, code)
        assert failed is None, failed
        interpreters.destroy(made)
        print((tg.matmul(x, x) == (x[:, :, None] + x[None]).max(1)).all())
        """
    )
    assert out == ["True"]
