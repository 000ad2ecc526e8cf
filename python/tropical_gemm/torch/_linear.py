"""A layer that multiplies by its weight over a semiring."""

from typing import Any

import torch

from .. import _core
from ._matmul import matmul

# By semiring: the weight of the inputs that pass at first, and the range of the others, which are taken now
# and then.
_START = {
    "max_plus": (0.0, -3.0, -1.0),
    "min_plus": (0.0, 1.0, 3.0),
    "max_mul": (1.0, 0.1, 0.5),
    "min_mul": (1.0, 5.0, 25.0),
    "max_min": (2.0, -2.0, 0.0),
    "min_max": (-2.0, 0.0, 2.0),
}


class TropicalLinear(torch.nn.Module):
    """``y[j] = add_k mul(x[k], weight[j, k])``, and with a bias ``add`` of that and ``bias[j]``.

    For max_plus ``y[j] = max(max_k(x[k] + weight[j, k]), bias[j])``: the bias is the weight of one more input
    that is always the semiring's one. On a tie of the two the gradient goes to the product.

    Parameters
    ----------
    in_features, out_features
        The sizes of the last axis of the input and of the output; other axes are free, as for
        ``torch.nn.Linear``.
    semiring
        One of the six that have gradients: all but ``"or_and"``.
    bias
        Whether there is one.
    device, dtype
        Of the parameters; a floating dtype.

    Attributes
    ----------
    weight : (out_features, in_features)
    bias : (out_features,), or None

    Notes
    -----
    At first each output takes the input of its own number (modulo the smaller size) nearly unchanged, and the
    others only where they are larger by a random margin (in min semirings smaller). With weights drawn alike,
    outputs of a layer soon all take the same few inputs, values drift by the maximum of the weights at every
    layer, and deep stacks do not train.

    Raises
    ------
    ValueError, TypeError
        For sizes below 1, an unknown semiring or ``"or_and"``, and a dtype that is not floating.

    Examples
    --------
    >>> import torch
    >>> from tropical_gemm.torch import TropicalLinear
    >>> layer = TropicalLinear(2, 1, bias=False)
    >>> _ = torch.nn.init.constant_(layer.weight, 0.5)
    >>> layer(torch.tensor([[1.0, 3.0]]))
    tensor([[3.5000]], grad_fn=<PlainProductBackward>)
    """

    in_features: int
    out_features: int
    semiring: str

    def __init__(
        self,
        in_features: int,
        out_features: int,
        semiring: str = "max_plus",
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        for name, size in (("in_features", in_features), ("out_features", out_features)):
            if isinstance(size, bool) or not hasattr(size, "__index__"):
                raise TypeError(f"{name} is of type {type(size).__name__}, expected an int")
            if size < 1:
                raise ValueError(f"{name} is {size}, expected at least 1")
        self.semiring = _core.semiring_name(semiring)
        if self.semiring not in _START:
            raise ValueError(
                f"semiring is {semiring!r}, which has no gradient; expected one of {', '.join(_START)}"
            )
        if dtype is not None and not isinstance(dtype, torch.dtype):
            raise TypeError(f"dtype is of type {type(dtype).__name__}, expected a torch.dtype")
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"dtype is {dtype}, expected a floating dtype: the layer is there to be trained")
        self.in_features, self.out_features = in_features, out_features
        self.weight = torch.nn.Parameter(torch.empty(out_features, in_features, device=device, dtype=dtype))
        self.bias = (
            torch.nn.Parameter(torch.empty(out_features, device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        passes, low, high = _START[self.semiring]
        torch.nn.init.uniform_(self.weight, low, high)
        if self.bias is not None:
            torch.nn.init.uniform_(self.bias, low, high)
        rows = torch.arange(self.out_features, device=self.weight.device)
        columns = torch.arange(self.in_features, device=self.weight.device)
        own = rows[:, None] % self.in_features == columns % self.out_features
        with torch.no_grad():
            self.weight.masked_fill_(own, passes)

    def forward(self, x: Any) -> Any:
        y = matmul(x, self.weight.mT, semiring=self.semiring)
        if self.bias is None:
            return y
        better = self.bias > y if self.semiring.startswith("max") else self.bias < y
        return torch.where(better | self.bias.isnan(), self.bias, y)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, semiring={self.semiring!r}, "
            f"bias={self.bias is not None}"
        )
