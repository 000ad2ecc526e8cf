"""The CUDA library: where it is looked for, what is said where there is none, what it is handed.

No GPU is needed: a fake library computes on the host.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tropical_gemm as tg

HERE = Path(__file__).parent

# One process for each, since the library is opened once.
ASK = """
import numpy as np, tropical_gemm as tg
from on_fake_cuda import OnDevice
x = OnDevice(np.ones((2, 2)))
assert not tg.cuda_available()
print(tg.info()["cuda"]["built"], tg.info()["cuda"]["problem"])
try:
    tg.matmul(x, x)
except RuntimeError as error:
    print(error)
assert tg.matmul(x.x, x.x).tolist() == [[2, 2], [2, 2]]
"""


def run(library, *command):
    environment = {
        **os.environ,
        "TROPICAL_GEMM_CUDA_LIBRARY": str(library),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    got = subprocess.run(
        [sys.executable, *command], env=environment, cwd=HERE, capture_output=True, text=True, timeout=300
    )
    assert got.returncode == 0, got.stdout + got.stderr
    return got.stdout


def fake_library():
    """Built with the C++ tests: in the tree of scripts/install_package.sh, or where TG_FAKE_CUDA says."""
    beside_tests = HERE.parents[1] / "build" / "python" / "tests" / "libtropical_gemm_fake_cuda.so"
    path = Path(os.environ.get("TG_FAKE_CUDA", beside_tests))
    if not path.exists():
        pytest.skip(f"the fake CUDA library was not built: {path}")
    return path


def test_no_library():
    said = run("/nowhere/libtropical_gemm_cuda.so", "-c", ASK)
    assert said.startswith("False this build has no CUDA backend")
    assert said.count("there is no /nowhere/libtropical_gemm_cuda.so; pass arrays in host memory") == 2


def test_something_else(tmp_path):
    said = run(tg._core.__file__, "-c", ASK)
    assert "is no CUDA backend: it has no symbol tropical_gemm_cuda_backend" in said
    (tmp_path / "text.so").write_text("no library")
    assert "the CUDA backend cannot be opened" in run(tmp_path / "text.so", "-c", ASK)


def test_import_opens_nothing():
    # Not even where a library is named that does not exist; and the driver stays closed.
    ask = "import tropical_gemm, sys; print(*(l for l in open('/proc/self/maps') if 'libcuda' in l))"
    assert run("/nowhere", "-c", ask).strip() == ""


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
def test_the_module_shows_nothing_but_its_entry():
    # A C++ runtime that was linked in statically would meet torch's: "free(): invalid pointer" at its import.
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", tg._core.__file__], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert [line.split()[-1] for line in lines] == ["PyInit__core"]


def test_facts_without_a_gpu():
    cuda = tg.info()["cuda"]
    assert set(cuda) == {"built", "available", "architectures", "devices", "problem"}
    assert cuda["available"] or cuda["problem"]


def test_calls_on_a_fake_device():
    library = fake_library()
    assert run(library, "on_fake_cuda.py", str(library)).strip() == "all right"
