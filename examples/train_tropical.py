"""A network of tropical layers and a ReLU network of the same sizes, trained on handwritten digits.

The tropical one keeps a linear layer in front, which looks at the pixels, and takes the two layers behind it
over (max, +): each unit is the largest of its inputs plus weights, where the ReLU network sums. Runs on a GPU
where there is one.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator

import numpy as np
import torch
from matplotlib.figure import Figure
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from tropical_gemm.torch import TropicalLinear


def digits(device: str) -> tuple[torch.Tensor, ...]:
    """Pixels and labels to train with, and others to test with."""
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(
        (images / 16 - 0.5).astype(np.float32), labels, test_size=0.25, random_state=0, stratify=labels
    )
    return tuple(torch.from_numpy(part).to(device) for part in parts)


def tropical_network(hidden: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, hidden),
        nn.LayerNorm(hidden),
        TropicalLinear(hidden, hidden),
        TropicalLinear(hidden, 10),
    )


def relu_network(hidden: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, hidden),
        nn.LayerNorm(hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 10),
    )


@contextlib.contextmanager
def no_waiting(device: str) -> Iterator[None]:
    """On a GPU, an error for any step at which the host would wait for it."""
    if device != "cuda":
        yield
        return
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def train(
    network: nn.Module, data: tuple[torch.Tensor, ...], steps: int, batch: int, advance
) -> tuple[np.ndarray, float]:
    """The loss at each step, and the seconds that a step took; the first one, which loads code, aside."""
    pixels, _, labels, _ = data
    device = pixels.device.type
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    generator = torch.Generator(device).manual_seed(0)
    losses = torch.empty(steps, device=device)
    for step in range(steps):
        if step == 1:
            losses[0].item()  # waits for a GPU
            start = time.perf_counter()
        with no_waiting(device):
            chosen = torch.randint(len(pixels), (batch,), generator=generator, device=device)
            loss = nn.functional.cross_entropy(network(pixels[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[step] = loss.detach()
        advance()
    curve = losses.cpu().numpy()
    return curve, (time.perf_counter() - start) / (steps - 1)


@torch.no_grad()
def accuracy(network: nn.Module, data: tuple[torch.Tensor, ...]) -> float:
    _, pixels, _, labels = data
    return (network(pixels).argmax(1) == labels).float().mean().item()


def draw(curves: dict[str, np.ndarray], path: str) -> None:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, losses in curves.items():
        width = max(len(losses) // 50, 1)
        axes.plot(
            np.arange(width - 1, len(losses)),
            np.convolve(losses, np.ones(width) / width, "valid"),
            label=name,
        )
    axes.set(title="Handwritten digits", xlabel="step", ylabel="cross-entropy of the batches", yscale="log")
    axes.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--output", default="train_tropical.png")
    arguments = parser.parse_args()
    if arguments.steps < 2:
        parser.error("--steps has to be at least 2")

    data = digits(arguments.device)
    curves, results = {}, []
    columns = TextColumn("{task.description:10}"), BarColumn(), TextColumn("{task.completed}/{task.total}")
    with Progress(*columns, TimeElapsedColumn()) as progress:
        for name, build in (("tropical", tropical_network), ("ReLU", relu_network)):
            torch.manual_seed(0)
            network = build(arguments.hidden).to(arguments.device)
            task = progress.add_task(name, total=arguments.steps)
            curves[name], seconds = train(
                network, data, arguments.steps, arguments.batch, lambda task=task: progress.advance(task)
            )
            results.append((name, accuracy(network, data), seconds))

    for name, share, seconds in results:
        print(f"{name:8} network: {share:6.1%} of {len(data[3])} test digits, {1e3 * seconds:.2f} ms a step")
    draw(curves, arguments.output)
    print(f"loss curves: {arguments.output}")


if __name__ == "__main__":
    main()
