"""Under the transforms of torch.func, beside the formula under the same ones."""

import pytest
import tropical_gemm as tg
import tropical_gemm.torch as tgt
from gpu import torch
from torch import func
from torch_cases import DEVICES, KINDS, formula, normal, same


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(params=KINDS)
def both(request):
    """The product, and the formula."""
    return lambda a, b: tg.matmul(a, b, semiring=request.param), formula(request.param)


AXES = (
    ((0, None), (6, 4, 5), (5, 3)),
    ((None, 0), (4, 5), (6, 5, 3)),
    ((0, 0), (6, 4, 5), (6, 5, 3)),
    ((1, 2), (4, 6, 5), (5, 3, 6)),
    ((-1, None), (4, 5, 6), (5, 3)),
    ((0, 0), (6, 2, 4, 5), (6, 5, 3)),
    ((0, 0), (6, 4, 5), (6, 2, 5, 3)),
    ((0, None), (6, 2, 4, 5), (1, 5, 3)),
    ((None, 1), (2, 4, 5), (2, 6, 5, 3)),
)


@pytest.mark.parametrize(("dims", "shape_a", "shape_b"), AXES, ids=str)
def test_vmap(device, both, dims, shape_a, shape_b):
    a, b = normal(*shape_a, device=device), normal(*shape_b, device=device, seed=1)

    def everything(product):
        def loss(a, b):
            return product(a, b).sin().sum()

        over = torch.vmap(product, dims)
        x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
        return {
            "vmap": over(a, b),
            "vmap to the end": torch.vmap(product, dims, out_dims=-1)(a, b),
            "vmap of grad": torch.vmap(func.grad(loss, (0, 1)), dims)(a, b),
            "grad of vmap": func.grad(lambda a, b: over(a, b).sin().sum(), (0, 1))(a, b),
            "autograd of vmap": torch.autograd.grad(over(x, y).sin().sum(), (x, y)),
            "vmap of hessian": torch.vmap(func.hessian(loss), dims)(a, b),
        }

    got, expected = (everything(product) for product in both)
    for name in got:
        same(got[name], expected[name], msg=lambda text, name=name: f"{name}: {text}")


def test_vmap_of_what_else_a_call_gives(device):
    a, b = normal(6, 4, 5, device=device), normal(5, 3, device=device)
    got = torch.vmap(lambda a: tgt.matmul(a, b, return_argmax=True, argmax_offset=2))(a)
    same(tuple(got), tuple(tgt.matmul(a, b, return_argmax=True, argmax_offset=2)))
    bits = normal(6, 4, 5, device=device) > 0
    same(
        torch.vmap(lambda x: tgt.matmul(x, x.mT, semiring="or_and"))(bits),
        tg.matmul(bits, bits.mT, semiring="or_and"),
    )
    g = normal(6, 4, 3, device=device, seed=2)
    argmax = tgt.matmul(a, b, return_argmax=True).argmax
    grads = torch.vmap(lambda g, k, a: tuple(tgt.matmul_backward(g, k, a, b)))(g, argmax, a)
    same(grads[0], tgt.matmul_backward(g, argmax, a, b).grad_a)
    same(grads[1].sum(0), tgt.matmul_backward(g, argmax, a, b).grad_b)
    with pytest.raises(RuntimeError, match="out= is not for the transforms"):
        torch.vmap(lambda a: tgt.matmul(a, b, out=torch.empty(4, 3, device=device, dtype=a.dtype)))(a)


def test_vmap_in_vmap(device, both):
    a, b = normal(6, 4, 5, device=device), normal(7, 5, 3, device=device)
    got, expected = (torch.vmap(torch.vmap(p, (0, None)), (None, 0))(a, b) for p in both)
    same(got, expected)


def test_vectors(device, both):
    a, b = normal(6, 5, device=device), normal(5, 3, device=device)
    product, _ = both
    same(torch.vmap(product, (0, None))(a, b), product(a, b))
    same(func.jacrev(lambda v: product(v, b))(a[0]), func.jacrev(lambda v: product(v[None], b)[0])(a[0]))


def test_derivatives(device, both):
    a, b = normal(4, 5, device=device), normal(5, 3, device=device)
    ta, tb = normal(4, 5, device=device, seed=1), normal(5, 3, device=device, seed=1)

    def everything(product):
        def loss(a, b):
            return product(a, b).sin().sum()

        values, pull = func.vjp(product, a, b)
        return {
            "grad": func.grad(loss, (0, 1))(a, b),
            "grad of one": func.grad(loss)(a, b),
            "vjp": (values, pull(torch.ones_like(values))),
            "vjp, batched": torch.vmap(pull)(torch.stack([values, 2 * values])),
            "jvp": func.jvp(product, (a, b), (ta, tb)),
            "jvp of one": func.jvp(lambda b: product(a, b), (b,), (tb,)),
            "jacrev": func.jacrev(product, (0, 1))(a, b),
            "jacfwd": func.jacfwd(product, (0, 1))(a, b),
            "hessian": func.hessian(loss, (0, 1))(a, b),
            "reverse over reverse": func.jacrev(func.jacrev(loss, (0, 1)), (0, 1))(a, b),
            "reverse over forward": func.jacrev(func.jacfwd(loss, (0, 1)), (0, 1))(a, b),
            "forward over forward": func.jacfwd(func.jacfwd(loss, (0, 1)), (0, 1))(a, b),
            "third": func.jacrev(func.hessian(loss))(a, b),
            "linearize": func.linearize(lambda a: product(a, b), a)[1](ta),
        }

    got, expected = (everything(product) for product in both)
    for name in got:
        same(got[name], expected[name], msg=lambda text, name=name: f"{name}: {text}")


def test_outside_of_the_transform(device, both):
    """Gradients of tensors that a transform closes over, and modes that it leaves alone."""
    a, w = normal(6, 4, 5, device=device), normal(5, 3, device=device, grad=True)

    def outer(product):
        inner = torch.vmap(func.grad(lambda a: product(a, w).sin().sum()))(a)
        return torch.autograd.grad(inner.sin().sum(), w)

    def unrecorded(product):
        def loss(a):
            with torch.no_grad():
                c = product(a, w)
            return (c * a.sum()).sum()

        return func.grad(loss)(a[0])

    got, expected = (outer(product) for product in both)
    same(got, expected)
    got, expected = (unrecorded(product) for product in both)
    assert got.requires_grad == expected.requires_grad
    same(got, expected)


def test_ensembles(device):
    layers = [tgt.TropicalLinear(5, 3, device=device, dtype=torch.float64) for _ in range(4)]
    parameters, buffers = func.stack_module_state(layers)
    x = normal(6, 5, device=device)

    def loss(parameters, x):
        return func.functional_call(layers[0], (parameters, buffers), (x,)).sin().sum()

    got = torch.vmap(func.grad(loss), (0, None))(parameters, x)
    for i, layer in enumerate(layers):
        expected = torch.autograd.grad(layer(x).sin().sum(), tuple(layer.parameters()))
        same((got["weight"][i], got["bias"][i]), expected)
