"""Two lanes of work on a device: what others wait for runs ahead of the rest."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch


class Lanes:
    """On a GPU two streams, of which ``ahead`` goes first; in host memory one after the other."""

    def __init__(self, device: torch.device) -> None:
        self.overlap = device.type == "cuda"
        cuda: Any = torch.cuda
        self._main = cuda.current_stream(device) if self.overlap else None
        self._ahead = cuda.Stream(device, priority=-1) if self.overlap else None

    def ahead(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._ahead is None else torch.cuda.stream(self._ahead)

    def join(self) -> None:
        """What follows in the main lane comes after all that the one ahead has been given."""
        if self._main is not None:
            self._main.wait_stream(self._ahead)

    def release(self) -> None:
        """What follows in the lane ahead comes after all that the main one has been given."""
        if self._ahead is not None:
            self._ahead.wait_stream(self._main)
