"""Programs in interpreters of their own, which fail instead of hanging."""

import os
import subprocess
import sys
import textwrap

# Where a child hangs, the stacks of its threads tell, a little before its time is over.
_STACKS = "import faulthandler; faulthandler.enable(); faulthandler.dump_traceback_later({}, exit=True)\n"


def run(program, *, seconds=120, **environment):
    """The words that a fresh interpreter prints, which has to end well and in time."""
    done = subprocess.run(
        [sys.executable, "-c", _STACKS.format(seconds) + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=seconds + 10,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Fatal" not in done.stderr, done.stderr
    return done.stdout.split()
