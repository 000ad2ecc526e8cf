"""The layer: its formula, its parameters, and that stacks of it train."""

import copy
import pickle

import pytest
import tropical_gemm.torch as tgt
from gpu import torch
from torch_cases import DEVICES, SEMIRINGS, formula, normal, same


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def plus(semiring, x, y):
    return torch.maximum(x, y) if semiring.startswith("max") else torch.minimum(x, y)


@pytest.mark.parametrize("semiring", SEMIRINGS)
@pytest.mark.parametrize("bias", [True, False])
def test_formula(device, semiring, bias):
    layer = tgt.TropicalLinear(5, 3, semiring, bias, device, torch.float64)
    assert layer.weight.shape == (3, 5)
    assert layer.weight.device.type == device
    if bias:
        with torch.no_grad():
            layer.bias.copy_(normal(3, device=device))
    for shape in ((5,), (4, 5), (2, 4, 5), (0, 5)):
        x = normal(*shape, device=device)
        expected = formula(semiring)(x.reshape(-1, 5), layer.weight.mT).reshape(*shape[:-1], 3)
        if bias:
            expected = plus(semiring, expected, layer.bias)
        got = layer(x)
        same(got, expected)
        same(*(torch.autograd.grad(y.sin().sum(), layer.parameters()) for y in (got, expected)))


def test_ties_and_nan(device):
    layer = tgt.TropicalLinear(2, 2, device=device)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.copy_(torch.tensor([1.0, torch.nan]))
    y = layer(torch.tensor([[1.0, 0.0], [torch.nan, 0.0]], device=device))
    same(y, torch.tensor([[1.0, torch.nan], [torch.nan, torch.nan]], device=device), equal_nan=True)
    y[0, 0].backward()
    assert layer.weight.grad[0].tolist() == [1, 0]
    assert layer.bias.grad.tolist() == [0, 0]


def test_as_a_module(device):
    layer = tgt.TropicalLinear(5, 3, "MinPlus", device=device)
    assert repr(layer) == "TropicalLinear(in_features=5, out_features=3, semiring='min_plus', bias=True)"
    x = normal(4, 5, device=device, dtype=torch.float32)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        same(other(x), layer(x))
    other = tgt.TropicalLinear(5, 3, "min_plus", device=device)
    other.load_state_dict(layer.state_dict())
    same(other(x), layer(x))
    assert list(dict(tgt.TropicalLinear(5, 3, bias=False).named_parameters())) == ["weight"]
    assert layer.half()(x.half()).dtype == torch.float16
    assert tgt.TropicalLinear(5, 3, device="meta")(x.to("meta")).shape == (4, 3)


def test_refusals():
    with pytest.raises(ValueError, match=r"or_and.*no gradient"):
        tgt.TropicalLinear(5, 3, "or_and")
    with pytest.raises(ValueError, match="expected one of max_plus"):
        tgt.TropicalLinear(5, 3, "plus")
    with pytest.raises(ValueError, match="out_features is 0"):
        tgt.TropicalLinear(5, 0)
    with pytest.raises(TypeError, match=r"dtype is torch\.int32"):
        tgt.TropicalLinear(5, 3, dtype=torch.int32)
    with pytest.raises(ValueError, match=r"a has shape \(4, 4\)"):
        tgt.TropicalLinear(5, 3)(torch.zeros(4, 4))


def stack(semiring, layers, width):
    return torch.nn.Sequential(*(tgt.TropicalLinear(width, width, semiring) for _ in range(layers)))


@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_the_first_layer_of_a_deep_stack_is_reached(semiring):
    torch.manual_seed(0)
    network, x = stack(semiring, 12, 16), torch.randn(256, 16)
    x = x.abs() + 0.1 if semiring.endswith("mul") else x
    y = network(x.requires_grad_())
    assert y.std(0).mean() > 0.3 * x.std(0).mean(), "outputs all alike"
    assert y.mean(0).abs().mean() < 3, "values drift"
    y.square().sum().backward()
    assert (x.grad != 0).any(0).all(), "inputs that nothing depends on"
    if semiring.endswith(("plus", "mul")):  # in max_min and min_max an x that passes leaves its weight alone
        for layer in network:
            reached = (layer.weight.grad != 0).any(1) | (layer.bias.grad != 0)
            assert reached.all()


@pytest.mark.parametrize("semiring", ["max_plus", "min_plus", "max_mul"])
def test_a_deep_stack_trains(semiring):
    torch.manual_seed(0)
    network, x = stack(semiring, 8, 16), torch.randn(512, 16)
    x = x.abs() + 0.1 if semiring.endswith("mul") else x
    target = tgt.TropicalLinear(16, 16, semiring)
    with torch.no_grad():
        for p in target.parameters():
            p.copy_(torch.rand_like(p) if semiring == "max_mul" else torch.randn_like(p))
        y = target(x)
    optimizer = torch.optim.Adam(network.parameters(), 0.02)
    losses = []
    for _ in range(200):
        loss = (network(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    # Less than a third of what the best constant leaves.
    assert losses[-1] < min(losses[0], y.var(0).mean().item()) / 2, losses[-1]


@pytest.mark.parametrize(
    ("sizes", "options", "argument"),
    [
        (("a", 2), {}, "in_features"),
        ((2, 2.5), {}, "out_features"),
        ((True, 2), {}, "in_features"),
        ((2, 2), {"dtype": "float32"}, "dtype"),
    ],
)
def test_kinds_of_arguments(sizes, options, argument):
    with pytest.raises(TypeError, match=argument):
        tgt.TropicalLinear(*sizes, **options)
