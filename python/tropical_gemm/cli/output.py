"""Files that are written whole or not at all, as a set."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np


def check(places: dict[str, Path]) -> None:
    """Refuses names under which the results of these names cannot be written, before anything is computed."""
    for name, path in places.items():
        if path.suffix != ".npy":
            raise ValueError(f"the {name} would go to {path}, expected a name that ends with .npy")
        if path.is_dir():
            raise IsADirectoryError(f"the {name} would go to {path}, which is a directory")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no directory {path.parent} for {path.name}")
    if len({path.resolve() for path in places.values()}) < len(places):
        raise ValueError(f"{', '.join(map(str, places.values()))}: expected a file of its own for each")


def write_arrays(arrays: dict[Path, Any]) -> None:
    """Each array to its .npy file; None removes a file that is there from an earlier run.

    All are written beside their places first, then each is moved into its place. Whatever fails, all places
    hold what they held before. Symbolic links are followed.
    """
    wanted = {path.resolve(): array for path, array in arrays.items()}
    new: dict[Path, Path] = {}
    old: dict[Path, Path | None] = {}
    try:
        for place, array in wanted.items():
            if array is not None:
                new[place] = _written_beside(place, array)
        for place in wanted:
            old[place] = _kept_beside(place) if place.exists() else None
            if place in new:
                os.replace(new[place], place)
            else:
                place.unlink(missing_ok=True)
    except BaseException:
        for place, kept in old.items():
            if kept is None:
                place.unlink(missing_ok=True)
            else:
                os.replace(kept, place)
        raise
    finally:
        for part in (*new.values(), *old.values()):
            if part is not None:
                part.unlink(missing_ok=True)


def _beside(place: Path) -> Path:
    """An empty file in the same directory."""
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.", suffix=".part")
    os.close(handle)
    return Path(name)


def _written_beside(place: Path, array: Any) -> Path:
    part = _beside(place)
    try:
        with part.open("wb") as file:
            np.save(file, array, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(place)) from None
        raise
    return part


def _kept_beside(place: Path) -> Path:
    """A second name for a file, or a copy where the file system has no such thing."""
    part = _beside(place)
    part.unlink()
    try:
        os.link(place, part)
    except OSError:
        shutil.copy2(place, part)
    return part
