"""Batch axes of torch.vmap, moved to the front of operands and gradients."""

from typing import Any


def leading(dims: tuple[Any, ...], arrays: tuple[Any, ...], own: tuple[int, ...]) -> list[Any]:
    """The arrays, each with its batch axis in front; their leading axes broadcast as they did.

    ``own`` counts the axes of each that are not leading ones; absent arrays are None.
    """
    moved = [x if d is None else x.movedim(d, 0) for x, d in zip(arrays, dims, strict=True)]
    leads = [
        0 if x is None else max(x.dim() - axes - (d is not None), 0)
        for x, axes, d in zip(moved, own, dims, strict=True)
    ]
    most = max(leads)
    return [
        x if d is None else x.reshape((x.shape[0], *(1,) * (most - lead), *x.shape[1:]))
        for x, d, lead in zip(moved, dims, leads, strict=True)
    ]


def operands(dims: tuple[Any, Any], a: Any, b: Any) -> tuple[Any, Any]:
    """``a`` and ``b``, each with its batch axis in front; their leading axes broadcast as they did."""
    x, y = leading(dims, (a, b), (2, 2))
    return x, y


def gradient(
    size: int, dims: tuple[Any, ...], arrays: tuple[Any, ...], shapes: tuple[Any, Any]
) -> tuple[list[Any], tuple[Any, Any]]:
    """``(grad_c, argmax, a, b)`` and the shapes of ``a`` and ``b``, with a batch axis of that size in front.

    Every sample has gradients of its own, so what has no batch axis gets one, without a copy.
    """
    most = max(len(shape) for shape in shapes)
    full = tuple((size, *(1,) * (most - len(shape)), *shape) for shape in shapes)
    batched: list[Any] = [
        None if x is None else x.unsqueeze(0).expand((size, *x.shape)) if d is None else x.movedim(d, 0)
        for x, d in zip(arrays, dims, strict=True)
    ]
    for i, shape in ((2, full[0]), (3, full[1])):
        if batched[i] is not None:
            batched[i] = batched[i].reshape(shape)
    return batched, (full[0], full[1])
