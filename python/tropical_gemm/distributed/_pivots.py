"""Blocked Floyd-Warshall on blocks that go round the ranks.

For each pivot, a block K of nodes:
  D[K, :] is closed over K: one half of these rows, then the other, and the paths of each offered to the
    other; 64 rows or less by D[K, :] <- D[K, :] add D[K, K] D[K, :] until all of K can be passed
  D[i, :] <- D[i, :] add D[i, K] D[K, :] for the rows i outside K, with the D[i, K] from before
Each product offers a row all candidates at once, in the columns of K too, with factors from before, and the
lowest k of the best wins. That is what the argument at the head of src/closure.cpp needs, so predecessors
never form a cycle here either. The result depends on the size of the blocks, not on the number or the
arrangement of the ranks.

The ranks in whose columns K is send D[:, K] across; those in whose rows it is close D[K, :] and send it down.
That is done for the next pivot before the bulk of the update by this one, during which the messages travel
(look-ahead). Only D[K, K] is waited for, so that the ranks without the columns of K need not wait for those
that bring them up to date; these have that much less to do afterwards.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist

from .. import _core
from ._agree import broadcast, reduced
from ._cyclic import BlockCyclic

NONE = -9999
_BASE = 64
"""Rows that are closed by products with themselves."""
_CHUNK = 1 << 27
"""Elements of a product at a time: what bounds the memory to look up predecessors, and lets messages in
between."""

Span = tuple[int, int]


@dataclass
class Panels:
    """What a pivot's update reads: D[rows here, K] from before, and D[K, columns here] closed."""

    pivot: int
    column: torch.Tensor
    row: torch.Tensor
    before: "torch.Tensor | None"
    bad: torch.Tensor  # a node of a closed walk that is too good, n where there is none
    messages: list[Any] = field(default_factory=list)


@dataclass
class Diverged(Exception):
    """Some closed walk is better than staying; every rank learns of it at the same pivot."""

    node: int


class Pivots:
    """The closure of ``d``, with predecessors in ``pred``, in place.

    ``watches``: whether closed walks could be better than staying, which is then looked for.
    """

    def __init__(
        self,
        d: BlockCyclic,
        pred: "torch.Tensor | None",
        semiring: str,
        *,
        watches: bool,
        tolerance: float = 0.0,
        threads: "int | None" = None,
    ) -> None:
        self.d, self.pred, self.semiring, self.threads = d.local, pred, semiring, threads
        self.watches, self.tolerance = watches, tolerance
        self.n, self.grid, self.rows, self.columns = d.n, d.grid, d.row_axis, d.column_axis
        _, self.one = constants(semiring, self.d)
        cuda: Any = torch.cuda
        self._listening = cuda.Stream(self.d.device) if self.d.is_cuda else None
        height, width = self.d.shape
        block = min(d.block, d.n)
        # For this pivot and the next one.
        self._column = [self.d.new_empty(height * block) for _ in range(2)]
        self._row = [self.d.new_empty(block * width) for _ in range(2)] if self.grid.rows > 1 else []
        self._before = (
            [x.new_empty(x.shape, dtype=torch.int32) for x in self._row] if pred is not None else []
        )

    def run(
        self,
        first: int = 0,
        progress: "Callable[[int, int], object] | None" = None,
        save: "Callable[[int], None] | None" = None,
        due: Callable[[int], bool] = lambda done: False,
    ) -> None:
        """The pivots from ``first`` on. After those of which ``due`` is true, ``save`` is called with their
        number, when every rank holds the matrix as it is between two pivots."""
        count = self.rows.blocks
        panels = None
        for b in range(first, count):
            if panels is None:
                panels = self._opened(b, None)
                self._complete(panels)
            saves = save is not None and due(b + 1)
            following = b + 1 if b + 1 < count and not saves else None
            opened = None
            if following is not None:
                opened = self._opened(following, panels)
            self._update(panels, following)  # while the messages of the next pivot are on their way
            if opened is not None:
                self._complete(opened)
            if saves and save is not None:
                save(b + 1)
            panels = opened
            if progress is not None:
                progress(b + 1, count)
        if self.watches and self.tolerance > 0:
            self._settle_all()

    def _opened(self, b: int, now: "Panels | None") -> Panels:
        """Closes the rows of a pivot, and starts to send what its update needs. ``now`` is the pivot before,
        where that has not been offered to its rows and columns yet."""
        size = self.rows.extent(b)
        height, width = self.d.shape
        column = self._column[b % 2][: height * size].view(height, size)
        rows, columns = self.rows.span(b), self.columns.span(b)
        bad = torch.full((1,), self.n, dtype=torch.int64, device=self.d.device)
        panels = Panels(b, column, column, None, bad)
        if rows is not None:
            if now is not None:
                self._offer(now, rows, (0, width))
            # D[K, K] alone is what others wait for.
            self._send_across(panels, rows, columns)
            for message in panels.messages:
                message.wait()
            panels.row = self.d[slice(*rows)]
            panels.before = None if self.pred is None else self.pred[slice(*rows)]
            Rows(self, panels, column[slice(*rows)], columns).close()
        else:
            panels.row = self._row[b % 2][: size * width].view(size, width)
            panels.before = self._before[b % 2][: size * width].view(size, width) if self._before else None
        if now is not None and columns is not None:
            for others in self._between(height, self.rows.span(now.pivot), rows):
                self._offer(now, others, columns)
        for others in self._between(height, rows):
            self._send_across(panels, others, columns)
        for x in (panels.row, panels.before):
            if x is not None:
                self._send(panels, x, self.rows.owner(b), self.grid.down)
        if self.grid.everyone is not None:
            panels.messages.append(
                dist.all_reduce(bad, dist.ReduceOp.MIN, group=self.grid.everyone, async_op=True)
            )
        if self._listening is not None:
            self._listening.wait_stream(torch.cuda.current_stream(self.d.device))
        return panels

    def _send_across(self, panels: Panels, rows: Span, columns: "Span | None") -> None:
        """Some rows of D[:, K], from those that have them."""
        part = panels.column[slice(*rows)]
        if columns is not None:
            part.copy_(self.d[slice(*rows), slice(*columns)])
        self._send(panels, part, self.columns.owner(panels.pivot), self.grid.across)

    @staticmethod
    def _send(panels: Panels, x: torch.Tensor, root: int, group: Any) -> None:
        message = broadcast(x, root, group)
        if message is not None:
            panels.messages.append(message)

    def _complete(self, panels: Panels) -> None:
        """Waits for the panels, and hears from all ranks whether there still is a closure.

        On a GPU the host hears it while the update before goes on there.
        """
        with nullcontext() if self._listening is None else torch.cuda.stream(self._listening):
            for message in panels.messages:
                message.wait()
            node = int(panels.bad.item())
        if self._listening is not None:
            for message in panels.messages:
                message.wait()
        panels.messages.clear()
        if node < self.n:
            raise Diverged(node)

    def _update(self, panels: Panels, following: "int | None") -> None:
        """Offers the paths through a pivot to all rows and columns but those of the next one."""
        rows = columns = None
        if following is not None:
            rows, columns = self.rows.span(following), self.columns.span(following)
        for some_rows in self._between(self.d.shape[0], self.rows.span(panels.pivot), rows):
            for some_columns in self._between(self.d.shape[1], columns):
                self._offer(panels, some_rows, some_columns)

    @staticmethod
    def _between(size: int, *without: "Span | None") -> Iterator[Span]:
        """What remains of 0 to ``size``."""
        at = 0
        for first, last in sorted(span for span in without if span is not None):
            if at < first:
                yield at, first
            at = last
        if at < size:
            yield at, size

    def _offer(self, panels: Panels, rows: Span, columns: Span) -> None:
        i, j = slice(*rows), slice(*columns)
        pred = None if self.pred is None else self.pred[i, j]
        before = None if panels.before is None else panels.before[:, j]
        self.product(panels.column[i], panels.row[:, j], self.d[i, j], pred, before)

    def product(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor,
        pred: "torch.Tensor | None",
        before: "torch.Tensor | None",
    ) -> None:
        """c <- c add a b; where that is strictly better, the predecessor is that of the last step."""
        high = max(1, _CHUNK // max(c.shape[1], 1))
        for first in range(0, c.shape[0], high):
            i = slice(first, first + high)
            if pred is None or before is None:
                _core.matmul(a[i], b, (c[i], False), self.semiring, True, 0, self.threads, None)
                continue
            # Indices from n on are new, and name a row of `before`.
            _core.matmul(a[i], b, (c[i], pred[i]), self.semiring, True, self.n, self.threads, None)
            rows = pred[i] - self.n
            new = rows >= 0
            pred[i] = torch.where(new, before.gather(0, rows.clamp_(min=0).long()), pred[i])

    def settle(self, x: torch.Tensor, first: int) -> torch.Tensor:
        """Of a piece of the diagonal, from node ``first`` on: the first node that is better than staying, n
        where none is. Within the tolerance such a closed walk counts as staying."""
        better = x < self.one if self.semiring.startswith("min") else x > self.one
        beyond = better if self.tolerance <= 0 else better & ((x.double() - self.one).abs() > self.tolerance)
        if self.tolerance > 0:
            x.masked_fill_(better, self.one)
        nodes = torch.arange(first, first + len(x), device=x.device)
        return torch.where(beyond, nodes, self.n).amin()

    def _settle_all(self) -> None:
        """The diagonal, when all pivots are done."""
        bad = self.n
        for b in range(self.rows.blocks):
            rows, columns = self.rows.span(b), self.columns.span(b)
            if rows is not None and columns is not None:
                diagonal = self.d[slice(*rows), slice(*columns)].diagonal()
                bad = min(bad, int(self.settle(diagonal, b * self.rows.block)))
        bad = int(reduced(bad, dist.ReduceOp.MIN, self.grid.everyone, self.d))
        if bad < self.n:
            raise Diverged(bad)


class Rows:
    """The rows of a pivot, [D[K, K] | D[K, columns here]], closed over K."""

    def __init__(
        self, pivots: Pivots, panels: Panels, diagonal: torch.Tensor, columns: "Span | None"
    ) -> None:
        self.pivots, self.panels, self.size = pivots, panels, len(diagonal)
        # Where D[K, K] is: the copy, and itself if it is here.
        self.places = [0] if columns is None else [0, self.size + columns[0]]
        self.x = torch.cat([diagonal, panels.row], 1)
        self.pred = None
        if panels.before is not None:
            # Those of the copy of D[K, K] are of no use, but take part.
            ignored = panels.before.new_full((self.size, self.size), NONE)
            self.pred = torch.cat([ignored, panels.before], 1)

    def close(self) -> None:
        self._close(0, self.size)
        self.panels.row.copy_(self.x[:, self.size :])
        if self.pred is not None and self.panels.before is not None:
            self.panels.before.copy_(self.pred[:, self.size :])

    def _close(self, i: int, rows: int) -> None:
        """Rows i and following, over themselves."""
        if rows <= _BASE:
            reach = 1
            while reach < rows:
                self._offer(i, rows, i, rows)
                reach *= 2
            self._settle(i, rows)
            return
        size = -(-rows // (2 * _BASE)) * _BASE
        for k in range(i, i + rows, size):
            step = min(size, i + rows - k)
            self._close(k, step)
            self._offer(i, k - i, k, step)
            self._offer(k + step, i + rows - k - step, k, step)

    def _offer(self, i: int, rows: int, k: int, size: int) -> None:
        """The paths through nodes k and following, to rows i and following."""
        if rows == 0:
            return
        to, through = slice(i, i + rows), slice(k, k + size)
        source, before = self.x[through], None if self.pred is None else self.pred[through]
        if i == k:  # what is written is not read
            source, before = source.clone(), None if before is None else before.clone()
        factor = self.x[to, through].clone()
        pred = None if self.pred is None else self.pred[to]
        self.pivots.product(factor, source, self.x[to], pred, before)
        self._settle(i, rows)

    def _settle(self, i: int, rows: int) -> None:
        if not self.pivots.watches:
            return
        first = self.panels.pivot * self.pivots.rows.block + i
        for place in self.places:
            diagonal = self.x[i : i + rows, place + i : place + i + rows].diagonal()
            torch.minimum(self.panels.bad, self.pivots.settle(diagonal, first), out=self.panels.bad)


def constants(semiring: str, like: torch.Tensor) -> tuple[Any, Any]:
    """The zero and the one of a semiring, as numbers."""
    zero, one = _core.semiring_constants(semiring, str(like.dtype).removeprefix("torch."))
    return (x.item() if hasattr(x, "item") else x for x in (zero, one))  # type: ignore[return-value]
