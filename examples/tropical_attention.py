"""Attention by (max, +): a query takes the value of the one key that matches best, in one tropical product.

Scores are ``s[i, j] = max_k (q[i, k] + key[j, k])``, an element of the result ``max_j (s[i, j] + v[j, c])``.
Padding and the future are masked by the semiring's zero, -inf. A row of which everything is masked, here of a
sequence without a token, comes out as -inf, selects nothing (index -1) and trains nothing; a softmax would
give NaN there. The layer learns to find, for each position, the largest number that came before it.
"""

from __future__ import annotations

import argparse

import torch
from rich.progress import track
from torch import nn
from tropical_gemm.torch import TropicalLinear, matmul


class TropicalAttention(nn.Module):
    """Values x (batch, time, width) attended to by what is known of their places (time, width).

    The mask (batch, time, time) is true where a query may look at a key.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (TropicalLinear(width, width) for _ in range(4))

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(-2, -3)

    def forward(
        self, places: torch.Tensor, x: torch.Tensor, mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v = self.split(self.query(places)), self.split(self.key(places)), self.split(self.value(x))
        scores = matmul(q, k.mT).masked_fill(~mask[:, None], -torch.inf)
        attended, chosen = matmul(scores, v, return_argmax=True)
        return self.out(attended.transpose(-2, -3).flatten(-2)), chosen


def sequences(count: int, time: int, generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    """Numbers, a mask of the earlier ones within each sequence's length, and the largest earlier number."""
    numbers = torch.rand(count, time, generator=generator)
    lengths = torch.randint(0, time + 1, (count,), generator=generator)
    lengths[0] = 0  # a sequence of padding alone
    present = torch.arange(time) < lengths[:, None]
    mask = torch.ones(time, time, dtype=torch.bool).tril() & present[:, None, :] & present[:, :, None]
    target = numbers.masked_fill(~present, -torch.inf).cummax(1).values
    return numbers, mask, target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--time", type=int, default=16)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    width = 8
    embed, attention, read = (
        TropicalLinear(1, width),
        TropicalAttention(width, heads=2),
        TropicalLinear(width, 1),
    )
    modules = nn.ModuleList((embed, attention, read)).to(arguments.device)
    places = nn.Parameter(torch.randn(arguments.time, width, device=arguments.device))
    trained = [places, *modules.parameters()]
    optimizer = torch.optim.Adam(trained, lr=2e-2)

    def forward() -> tuple[torch.Tensor, ...]:
        numbers, mask, target = (
            x.to(arguments.device) for x in sequences(arguments.batch, arguments.time, generator)
        )
        attended, chosen = attention(places, embed(numbers[..., None]), mask)
        return read(attended)[..., 0], target, mask.any(-1), chosen

    losses = []
    for _ in track(range(arguments.steps), description="training"):
        found, target, looks, _ = forward()
        loss = (found - target)[looks].abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    found, target, looks, chosen = forward()
    nothing = ~looks
    print(f"mean error: {losses[0]:.3f} at first, {losses[-1]:.3f} after {len(losses)} steps")
    print(f"rows with nothing to look at: {int(nothing.sum())} of {nothing.numel()}")
    if not (chosen.movedim(1, -1)[nothing] == -1).all():
        raise SystemExit("a masked row selected something")
    if any(p.grad is not None and not p.grad.isfinite().all() for p in trained):
        raise SystemExit("a masked row left a gradient that is not finite")
    print("all of them selected nothing (index -1), and every gradient stayed finite")


if __name__ == "__main__":
    main()
