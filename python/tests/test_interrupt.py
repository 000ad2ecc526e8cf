"""Signals during a long product."""

import signal
import subprocess
import sys
import textwrap

import pytest

# Long on few data: a batch that repeats its matrices. The parent sends its signal at the word "begins".
PROGRAM = """
import signal, threading, time
import numpy as np
import tropical_gemm as tg

# A shell may have started the tests with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
counted = []
signal.signal(signal.SIGUSR1, lambda *_: counted.append(1))

def product(batch):
    a = np.broadcast_to(np.ones((256, 16384), np.float32), (batch, 256, 16384))
    return tg.matmul(a, np.ones((16384, 256), np.float32))

threading.Timer(0.3, print, ["begins"], {"flush": True}).start()
"""


def run_and_signal(code, signal_number):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM + textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout.readline() == "begins\n"
            child.send_signal(signal_number)
            return child.communicate(timeout=60)[0].split()
        finally:
            child.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_stops_a_long_product():
    code = """
    start = time.perf_counter()
    try:
        product(8_000)
    except KeyboardInterrupt:
        print("stopped", time.perf_counter() - start < 30)
    print(float(tg.matmul(np.ones(3), np.ones(3))))  # and the library goes on
    """
    assert run_and_signal(code, signal.SIGINT) == ["stopped", "True", "2.0"]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_handler_that_returns_lets_the_product_finish():
    code = """
    batch = 4
    while not counted:
        c = product(batch)
        batch *= 2
    print(c.min() == c.max() == 2.0)
    """
    assert run_and_signal(code, signal.SIGUSR1) == ["True"]
