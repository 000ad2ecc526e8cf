"""Contractions of networks: the share of Python in one of 1,000 small tensors, and spin glasses with counts.

python benchmarks/python/einsum.py network [--device cpu]
python benchmarks/python/einsum.py lattice --size 20 --batch 64 --device cuda [--values]
"""

import argparse
import time

import numpy as np
import torch
import tropical_gemm as tg
from tropical_gemm import _core


class Clock:
    """The time inside the core's functions, which it stands for."""

    NAMES = ("matmul", "count_matmul", "permute")

    def __init__(self):
        self.seconds, self.calls = 0.0, 0
        for name in self.NAMES:
            setattr(_core, name, self.timed(getattr(_core, name)))

    def timed(self, function):
        def call(*arguments):
            start = time.perf_counter()
            made = function(*arguments)
            self.seconds += time.perf_counter() - start
            self.calls += 1
            return made

        return call


def network(rng, count=1000, bond=2, near=10):
    """Tensors in a row of two to six legs: each is joined to the next, and at random to others near it."""
    legs = [[] for _ in range(count)]
    pairs = [(i, i + 1) for i in range(count - 1)] + [(0, near)]
    pairs += [
        (i, i + int(rng.integers(2, near))) for i in rng.permutation(count - near).tolist() for _ in range(2)
    ]
    for i, j in pairs:
        if max(len(legs[i]), len(legs[j])) < 6 and (i, j) not in legs[i]:
            legs[i].append((i, j))
            legs[j].append((i, j))
    legs[-1].append("end")
    return legs, [rng.normal(size=(bond,) * len(t)).astype(np.float32) for t in legs]


def lattice(rng, size, batch):
    """±J couplings of a square lattice in float32, one tensor for each bond; every tensor has the batch."""
    spins = np.arange(size * size).reshape(size, size)
    bonds = [
        *zip(spins[:, :-1].flat, spins[:, 1:].flat, strict=True),
        *zip(spins[:-1].flat, spins[1:].flat, strict=True),
    ]
    square = np.array([[1, -1], [-1, 1]], np.float32)
    couplings = rng.choice([-1, 1], (len(bonds), batch)).astype(np.float32)
    tensors = [j[:, None, None] * square for j in couplings]
    return [["n", int(a), int(b)] for a, b in bonds], tensors


def sweep(terms, size):
    """The order of a sweep: bonds to the right and down of a site are joined, then the boundary takes it."""
    owner = [min(t[1:]) for t in terms]
    alive, path = list(range(len(terms))), []
    made = len(terms)
    boundary = None
    for site in range(size * size):
        own = [i for i, o in enumerate(owner) if o == site]
        for i in own:
            if boundary is None:
                boundary = i
                continue
            path.append((alive.index(boundary), alive.index(i)))
            alive.remove(boundary)
            alive.remove(i)
            alive.append(made)
            boundary, made = made, made + 1
    return path


def report(name, call, clock, device, repeat):
    best = None
    for _ in range(repeat):
        clock.seconds, clock.calls = 0.0, 0
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        took = time.perf_counter() - start
        if best is None or took < best[0]:
            best = (took, clock.seconds, clock.calls)
    took, inside, calls = best
    said = f"{name}: {took * 1e3:.2f} ms, {calls} calls of the core"
    if device == "cpu":  # elsewhere they only enqueue
        said += f" take {inside * 1e3:.2f} ms of it: {1 - inside / took:.0%} in Python"
    print(said)
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("network", "lattice"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", type=int, default=12)
    parser.add_argument("--bond", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--values", action="store_true", help="without counts")
    parser.add_argument("--order", default="greedy", help="of opt_einsum, or sweep")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    clock = Clock()
    if arguments.what == "network":
        terms, tensors = network(rng, bond=arguments.bond)
        output, semiring, order = [], "max_plus", "greedy"
    else:
        terms, tensors = lattice(rng, arguments.size, arguments.batch)
        output, semiring = ["n"], "min_plus" if arguments.values else "count_min_plus"
        order = sweep(terms, arguments.size) if arguments.order == "sweep" else arguments.order
    legs = [len(t) for t in terms]
    start = time.perf_counter()
    flat = [x for tensor, term in zip(tensors, terms, strict=True) for x in (tensor.shape, term)]
    expression = tg.contract_expression(*flat, output, semiring=semiring, optimize=order)
    plan = expression._plan
    print(
        f"{len(terms)} tensors of {min(legs)} to {max(legs)} legs, "
        f"planned in {time.perf_counter() - start:.2f} s, "
        f"largest of {plan.largest} elements"
    )
    operands = tensors
    if arguments.device == "cuda":
        operands = [torch.from_numpy(x).cuda() for x in tensors]
    got = expression(*operands)
    print(
        "first result:",
        [float(torch.as_tensor(x).flatten()[0]) for x in (got if isinstance(got, tuple) else (got,))],
    )
    took = report("contraction", lambda: expression(*operands), clock, arguments.device, arguments.repeat)
    if arguments.what == "lattice":
        # Every tensor in between is written once and read once.
        item = 4 if arguments.values else 12
        made = sum(plan.elements(labels) for labels in plan.labels[len(terms) :])
        print(
            f"{took / arguments.batch * 1e3:.3f} ms an instance; "
            f"the tensors in between are {made * item / 1e9:.3f} GB, "
            f"written and read: {2 * made * item / took / 1e9:.0f} GB/s"
        )


if __name__ == "__main__":
    main()
