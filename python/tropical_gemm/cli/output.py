"""Files that are written whole or not at all."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np


def write_arrays(arrays: dict[Path, Any]) -> None:
    """Each array to its .npy file: first all of them beside their places, then each into its place."""
    written: list[tuple[str, Path]] = []
    try:
        for path, array in arrays.items():
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
            written.append((name, path))
            with os.fdopen(handle, "wb") as file:
                np.save(file, array, allow_pickle=False)
                file.flush()
                os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        for name, path in written:
            os.chmod(name, 0o666 & ~umask)
            os.replace(name, path)
    finally:
        for name, _ in written:
            if os.path.exists(name):
                os.unlink(name)
