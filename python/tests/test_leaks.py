"""Memory after some calls of every front; `make leaks` makes a million of them."""

import subprocess
import sys
from pathlib import Path


def test_memory_stays_what_it_was():
    program = Path(__file__).with_name("leaks.py")
    done = subprocess.run(
        [sys.executable, program, "--calls", "40000"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("grown by") >= 13
