"""What goes wrong with graphs rather than with arguments."""

from collections.abc import Callable
from typing import Any


class AboutNodes(Exception):
    """A message with nodes in it, one for each field of ``template``; :meth:`named` calls them otherwise."""

    def __init__(self, template: str, *nodes: int) -> None:
        super().__init__(template.format(*nodes))
        self.template, self.nodes = template, nodes

    def named(self, name: Callable[[int], Any]) -> str:
        return self.template.format(*map(name, self.nodes))


class EdgeError(AboutNodes, ValueError):
    """An edge that cannot be taken."""


class NegativeEdgeError(EdgeError):
    """An edge that is negative where the method allows none."""


class PathOverflowError(AboutNodes, OverflowError):
    """A path whose length does not fit the dtype."""


class DivergenceError(AboutNodes, ValueError):
    """There is no closure: some closed walk gets better each time it is gone round. ``node`` lies on one."""

    @property
    def node(self) -> int:
        return self.nodes[0]


class NegativeCycleError(DivergenceError):
    """There are no shortest paths: a cycle has negative length. ``node`` lies on one."""


class TooLargeError(MemoryError):
    """What a call needs and what there is (``facts``), and what to do."""

    def __init__(self, facts: str, advice: str) -> None:
        super().__init__(f"{facts}; {advice}")
        self.facts = facts

    def __reduce__(self) -> tuple[Any, ...]:
        return MemoryError, (str(self),)
