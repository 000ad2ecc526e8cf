"""What the tests on tensors share: where they run, and the formulas whose gradients are the oracle."""

import pytest
from gpu import needs_gpu, torch

DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]
SEMIRINGS = ("max_plus", "min_plus", "max_mul", "min_mul", "max_min", "min_max")
KINDS = ("max_plus", "max_mul", "min_max")  # one of each rule of the gradient

_MUL = {"plus": torch.add, "mul": torch.mul, "min": torch.minimum, "max": torch.maximum}


def formula(semiring):
    """The product by broadcasting. ``max(dim)`` sends a gradient to one index, ``amax`` shares it out."""
    add, mul = semiring.split("_")

    def product(a, b):
        candidates = _MUL[mul](a.unsqueeze(-1), b.unsqueeze(-3))
        return getattr(candidates, add)(dim=-2).values

    return product


def normal(*shape, device="cpu", dtype=torch.float64, grad=False, seed=0):
    generator = torch.Generator().manual_seed(1000 * seed + sum(shape))
    x = torch.randn(shape, generator=generator, dtype=torch.float64).to(device=device, dtype=dtype)
    return x.requires_grad_(grad)


def same(got, expected, **tolerance):
    torch.testing.assert_close(got, expected, **tolerance)
