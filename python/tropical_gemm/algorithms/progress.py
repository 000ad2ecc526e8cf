"""How far a long call has come: a callback of the caller's, or a bar on the terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Report = Callable[[int, int], object]


@contextmanager
def reporting(progress: Any, what: str) -> "Iterator[Report | None]":
    """What the core calls with (done, total): nothing, the caller's function, or one that draws a bar."""
    check_progress(progress)
    if callable(progress):
        yield progress
    elif progress:
        with _bar(what) as report:
            yield report
    else:
        yield None


def check_progress(progress: Any) -> None:
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(
            f"progress is of type {type(progress).__name__}, expected a bool or a function of (done, total)"
        )


@contextmanager
def _bar(what: str) -> Iterator[Report]:
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        with _plain_bar(what) as report:
            yield report
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def _plain_bar(what: str) -> Iterator[Report]:
    def report(done: int, total: int) -> None:
        print(f"\r{what}: {100 * done // total:3d} %", end="", file=sys.stderr, flush=True)

    try:
        yield report
    finally:
        print(file=sys.stderr)
