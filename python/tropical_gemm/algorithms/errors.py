"""What goes wrong with graphs rather than with arguments."""


class DivergenceError(ValueError):
    """There is no closure: some closed walk gets better each time it is gone round. ``node`` lies on one."""

    def __init__(self, message: str, node: int) -> None:
        super().__init__(message)
        self.node = node


class NegativeCycleError(DivergenceError):
    """There are no shortest paths: a cycle has negative length. ``node`` lies on one."""
