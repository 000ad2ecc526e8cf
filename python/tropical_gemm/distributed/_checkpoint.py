"""A long run, from time to time on disk: whole or not at all, and resumed from there."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from ._agree import agree, as_bytes, reduced
from ._cyclic import BlockCyclic
from ._layout import SLAB

_FACTOR = 0x4BE98134A5976FD3


class Checkpoint:
    """Directories ``pivots-NUMBER`` below one that all ranks share, of which one is whole at any time.

    ``facts`` are what a run has to have in common with the one that wrote them.
    """

    def __init__(
        self, place: Any, every: int, d: BlockCyclic, pred: "torch.Tensor | None", facts: Any
    ) -> None:
        self.place, self.every, self.d = Path(place), every, d
        self.arrays = {"distances": d.local} | ({} if pred is None else {"predecessors": pred})
        self.facts = {
            **facts,
            "n": d.n,
            "block": d.block,
            "ranks": f"{d.grid.rows} x {d.grid.columns}",
            "dtype": str(d.local.dtype).removeprefix("torch."),
            "predecessors": pred is not None,
            "weights": fingerprint(d),
        }

    def due(self, done: int) -> bool:
        return done % self.every == 0

    def save(self, done: int) -> None:
        """Writes what all ranks hold after ``done`` pivots; the directory gets its name last."""
        part, whole = self.place / f".pivots-{done}.part", self.place / f"pivots-{done}"

        def begin() -> None:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            _write(part / "facts.json", [json.dumps(self.facts).encode()])

        def write() -> None:
            for name, x in self.arrays.items():
                _write(self._file(part, name), _slabs(x))

        def end() -> None:
            os.replace(part, whole)
            _sync(self.place)
            for _, old in self._found():
                if old != whole:
                    shutil.rmtree(old, ignore_errors=True)

        self._all(begin, only_first=True)
        self._all(write)
        self._all(end, only_first=True)

    def resume(self) -> int:
        """Reads what is there, and returns the number of pivots done; 0 where there is nothing."""
        found = max((done for done, _ in self._found()), default=0) if self.d.grid.me == 0 else 0
        done = int(reduced(found, dist.ReduceOp.MAX, self.d.grid.everyone, self.d.local))
        if done:
            self._all(lambda: self._read(self.place / f"pivots-{done}"))
        return done

    def _read(self, whole: Path) -> None:
        there = json.loads((whole / "facts.json").read_text())
        if not isinstance(there, dict):
            raise ValueError(f"checkpoint: {whole / 'facts.json'} holds no object")
        for name, value in self.facts.items():
            if there.get(name) != value:
                raise ValueError(
                    f"checkpoint: {whole} is of a run with {name} = {there.get(name)}, expected {value}; "
                    "name another directory, or remove it"
                )
        files = {name: self._file(whole, name) for name in self.arrays}
        for name, file in files.items():
            size, expected = file.stat().st_size, self.arrays[name].numel() * self.arrays[name].element_size()
            if size != expected:
                raise ValueError(f"checkpoint: {file} has {size} bytes, expected {expected}")
        for name, file in files.items():
            with file.open("rb") as stream:
                to = as_bytes(self.arrays[name])
                for first in range(0, len(to), SLAB):
                    part = to[first : first + SLAB]
                    part.copy_(torch.from_numpy(np.fromfile(stream, np.uint8, len(part))))

    def _found(self) -> list[tuple[int, Path]]:
        names = self.place.glob("pivots-*")
        return [(int(p.name.split("-")[1]), p) for p in names if p.name.split("-")[1].isdigit()]

    def _file(self, where: Path, name: str) -> Path:
        return where / f"{name}-{self.d.grid.me}.bin"

    def _all(self, action: Any, only_first: bool = False) -> None:
        """An action of all ranks, or of the first; all of them wait for it, and raise what one raised."""
        error: Exception | None = None
        try:
            if self.d.grid.me == 0 or not only_first:
                action()
        except Exception as e:  # whatever it is: the others wait to hear of it
            error = e
        agree(self.d.grid.everyone, self.d.local.device, {}, error)


def _write(path: Path, parts: Any) -> None:
    with path.open("wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _slabs(x: torch.Tensor) -> Iterator[memoryview]:
    flat = as_bytes(x)
    for first in range(0, len(flat), SLAB):
        yield flat[first : first + SLAB].cpu().numpy().data


def fingerprint(d: BlockCyclic) -> str:
    """A number that tells matrices apart, the same for any arrangement of the ranks."""
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[d.local.element_size()]
    total = 0
    columns = _mixed(d.columns, d.local.device)
    rows = _mixed(d.rows + d.n, d.local.device)
    for i in range(0, len(rows), 256):
        values = d.local[i : i + 256].view(bits).to(torch.int64)
        # Not linear: else all signs together, or an even factor's highest bit, would leave the sum as it is.
        values = (values ^ columns[None, :]) * rows[i : i + 256, None]
        values ^= values >> 32
        total += int((values * _FACTOR).sum())
    total = (total + 2**63) % 2**64 - 2**63
    return f"{reduced(total, dist.ReduceOp.SUM, d.grid.everyone, d.local) % 2**64:016x}"


def _mixed(index: Any, device: Any) -> torch.Tensor:
    """Odd numbers without pattern, one for each index (Steele and Vigna's mixer, SplitMix)."""
    z = (index.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return torch.from_numpy((z ^ (z >> np.uint64(31)) | np.uint64(1)).astype(np.int64)).to(device)


def forget(place: Any) -> None:
    """Removes the checkpoints below a directory, and the directory if nothing else is there."""
    for old in Path(place).glob("*pivots-*"):
        shutil.rmtree(old, ignore_errors=True)
    with contextlib.suppress(OSError):
        Path(place).rmdir()
