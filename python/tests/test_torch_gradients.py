"""Gradients on tensors: against the formula in torch, against differences, and what is kept and computed for
them."""

import subprocess
import sys
import threading
from pathlib import Path

import cases
import pytest
import tropical_gemm as tg
import tropical_gemm.torch as tgt
from gpu import needs_gpu, torch
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.utils.checkpoint import checkpoint
from torch_cases import DEVICES, KINDS, SEMIRINGS, formula, normal, same
from tropical_gemm import _core


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def matrices(a, b):
    return a[None] if a.dim() == 1 else a, b[:, None] if b.dim() == 1 else b


@pytest.mark.parametrize("shapes", cases.GRADIENT_SHAPES, ids=str)
@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_against_the_formula(device, semiring, shapes):
    a, b = (normal(*s, device=device, grad=True, seed=i) for i, s in enumerate(shapes))
    for product in (tg.matmul, tgt.matmul):
        c = product(a, b, semiring=semiring)
        assert c.requires_grad
        weight = normal(*c.shape, device=device)
        got = torch.autograd.grad(c, (a, b), weight)
        if a.shape[-1] == 0:
            assert all(not g.any() for g in got)
            continue
        expected = formula(semiring)(*matrices(a, b)).reshape(c.shape)
        same(c, expected)
        same(got, torch.autograd.grad(expected, (a, b), weight))


@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_gradcheck(device, semiring):
    a, b = normal(2, 3, 4, device=device, grad=True), normal(4, 2, device=device, grad=True)

    def product(a, b):
        return tgt.matmul(a, b, semiring=semiring)

    every = {"check_batched_grad": True, "check_forward_ad": True, "check_batched_forward_grad": True}
    assert gradcheck(product, (a, b), **every)
    assert gradgradcheck(product, (a, b), check_batched_grad=True, check_fwd_over_rev=True)


def test_second_derivatives_go_through_the_operands(device):
    a, b = normal(4, 5, device=device, grad=True), normal(5, 3, device=device, grad=True)

    def second(product):
        c = product(a, b)
        grads = torch.autograd.grad(c.sin().sum(), (a, b), create_graph=True)
        return torch.autograd.grad(sum((g * g).sum() for g in grads), (a, b), create_graph=True)

    for semiring in KINDS:
        got = second(lambda a, b, s=semiring: tgt.matmul(a, b, semiring=s))
        expected = second(formula(semiring))
        same(got, expected)
        third = torch.autograd.grad(sum(g.sum() for g in got), (a, b))
        same(third, torch.autograd.grad(sum(g.sum() for g in expected), (a, b)))


def test_the_gradient_by_itself(device):
    a, b = normal(2, 4, 5, device=device, grad=True), normal(5, 3, device=device, grad=True)
    for semiring in KINDS:
        argmax = tgt.matmul(a, b, semiring=semiring, return_argmax=True).argmax
        g = normal(2, 4, 3, device=device, grad=True)
        got = tg.matmul_backward(g, argmax, a, b, semiring=semiring)
        same(tuple(got), torch.autograd.grad(formula(semiring)(a, b), (a, b), g, create_graph=True))
        only = tg.matmul_backward(
            g.detach(), argmax, a.detach(), b.detach(), semiring=semiring, needs=(False, True)
        )
        assert only.grad_a is None
        same(only.grad_b, got.grad_b.detach())

        def gradient(g, a, b, argmax=argmax, semiring=semiring):
            return tuple(tg.matmul_backward(g, argmax, a, b, semiring=semiring))

        assert gradcheck(gradient, (g, a, b))
    vector = tg.matmul_backward(g[0, 0], argmax[0, 0], a[0, 0], b, semiring=semiring)
    assert (vector.grad_a.shape, vector.grad_b.shape) == ((5,), (5, 3))


def test_forward_mode(device):
    a, b, ta, tb = (normal(*s, device=device, seed=i) for i, s in enumerate([(4, 5), (5, 3), (4, 5), (5, 3)]))
    with forward_ad.dual_level():
        for semiring in KINDS:
            x, y = forward_ad.make_dual(a, ta), forward_ad.make_dual(b, tb)
            got = forward_ad.unpack_dual(tg.matmul(x, y, semiring=semiring))
            expected = forward_ad.unpack_dual(formula(semiring)(x, y))
            same((got.primal, got.tangent), (expected.primal, expected.tangent))
            with pytest.raises(RuntimeError, match="a requires grad"):
                tg.matmul(x, b, out=torch.empty_like(got.primal))


def test_a_tie_goes_to_the_first(device):
    a = torch.tensor([[1.0, 3.0, 3.0]], device=device, requires_grad=True)
    b = torch.zeros(3, 2, device=device, requires_grad=True)
    tgt.matmul(a, b).sum().backward()
    assert a.grad.tolist() == [[0, 2, 0]]
    assert b.grad.tolist() == [[0, 0], [1, 1], [0, 0]]


def test_masked_rows_train_nothing(device):
    a = torch.tensor([[-torch.inf, -torch.inf], [1.0, -torch.inf]], device=device, requires_grad=True)
    b = torch.tensor([[1.0], [2.0]], device=device, requires_grad=True)
    c, argmax = tgt.matmul(a, b, return_argmax=True)
    assert argmax.tolist() == [[-1], [0]]
    grads = torch.autograd.grad(c.sum(), (a, b), create_graph=True)
    assert grads[0].tolist() == [[0, 0], [1, 0]]
    assert grads[1].tolist() == [[1], [0]]


@pytest.mark.parametrize("semiring", KINDS)
def test_an_offset_moves_only_the_indices(device, semiring):
    a, b = normal(4, 5, device=device, grad=True), normal(5, 3, device=device, grad=True)
    plain = tgt.matmul(a, b, semiring=semiring, return_argmax=True)
    moved = tgt.matmul(a, b, semiring=semiring, return_argmax=True, argmax_offset=100)
    same(moved.argmax, plain.argmax + 100)
    assert not moved.argmax.requires_grad
    same(*(torch.autograd.grad(c.values.sin().sum(), (a, b)) for c in (plain, moved)))
    tangents = normal(4, 5, device=device, seed=1)
    with forward_ad.dual_level():
        dual = tgt.matmul(
            forward_ad.make_dual(a.detach(), tangents),
            b,
            semiring=semiring,
            return_argmax=True,
            argmax_offset=100,
        )
        expected = forward_ad.unpack_dual(formula(semiring)(forward_ad.make_dual(a.detach(), tangents), b))
        same(forward_ad.unpack_dual(dual.values).tangent, expected.tangent)


class Calls:
    """What is asked of the core."""

    def __init__(self, monkeypatch):
        self.outputs, self.needs = [], []
        product, gradient = _core.matmul, _core.matmul_backward
        monkeypatch.setattr(_core, "matmul", lambda *x: self.outputs.append(x[2]) or product(*x))
        monkeypatch.setattr(_core, "matmul_backward", lambda *x: self.needs.append(x[4]) or gradient(*x))


def test_only_what_is_needed(device, monkeypatch):
    a, b = normal(4, 5, device=device), normal(5, 3, device=device)
    calls = Calls(monkeypatch)
    tgt.matmul(a, b)
    with torch.no_grad():
        tgt.matmul(a.clone().requires_grad_(), b)
    with torch.inference_mode():
        tgt.matmul(a, b)
    torch.vmap(tgt.matmul, (0, None))(a[None], b)
    assert calls.outputs == [(True, False)] * 4
    for wants in ((True, False), (False, True), (True, True)):
        x, y = a.clone().requires_grad_(wants[0]), b.clone().requires_grad_(wants[1])
        tgt.matmul(x, y).sum().backward()
        assert tuple(calls.needs.pop()) == wants
        assert (x.grad is not None, y.grad is not None) == wants
    assert calls.outputs[4:] == [(True, True)] * 3


@pytest.mark.parametrize("changed", [0, 1])
def test_changes_between_forward_and_backward(device, changed):
    leaves = normal(4, 5, device=device, grad=True), normal(5, 3, device=device, grad=True)
    for semiring in ("max_mul", "min_max"):
        operands = [x.clone() for x in leaves]
        c = tgt.matmul(*operands, semiring=semiring)
        operands[changed].mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            c.sum().backward()
    c, argmax = tgt.matmul(*leaves, return_argmax=True)
    argmax.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        c.sum().backward()
    # The gradient of max_plus does not depend on the operands, as that of torch.add does not.
    operands = [x.clone() for x in leaves]
    c = tgt.matmul(*operands)
    expected = torch.autograd.grad(formula("max_plus")(*leaves).sum(), leaves)
    operands[changed].mul_(2)
    same(torch.autograd.grad(c.sum(), leaves), expected)


def test_out_takes_no_part(device):
    a, b = normal(4, 5, device=device, grad=True), normal(5, 3, device=device)
    out = torch.full((4, 3), 7.0, dtype=a.dtype, device=device)
    with pytest.raises(RuntimeError, match=r"a requires grad.*out="):
        tgt.matmul(a, b, out=out)
    with pytest.raises(RuntimeError, match=r"out requires grad.*out="):
        tgt.matmul(b.mT, b, out=torch.empty(3, 3, dtype=a.dtype, device=device, requires_grad=True))
    assert (out == 7).all()
    with torch.no_grad():
        assert tgt.matmul(a, b, out=out) is out
    same(out, formula("max_plus")(a.detach(), b))


def test_checkpoints(device):
    a, b = normal(4, 5, device=device, grad=True), normal(5, 3, device=device, grad=True)
    expected = torch.autograd.grad(formula("max_mul")(a, b).sin().sum(), (a, b))
    for reentrant in (False, True):
        c = checkpoint(lambda a, b: tgt.matmul(a, b, semiring="max_mul").sin(), a, b, use_reentrant=reentrant)
        a.grad = b.grad = None
        c.sum().backward()
        same((a.grad, b.grad), expected)


def test_gradients_from_several_threads(device):
    a, b = normal(4, 50, 40, device=device, grad=True), normal(40, 30, device=device, grad=True)
    expected = torch.autograd.grad(tgt.matmul(a, b).sin().sum(), (a, b))
    results = []

    def work():
        results.append(torch.autograd.grad(tgt.matmul(a, b).sin().sum(), (a, b)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for got in results:
        same(got, expected, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_narrow_dtypes(device, dtype):
    a, b = (
        normal(4, 5, device=device, dtype=dtype, grad=True),
        normal(5, 3, device=device, dtype=dtype, grad=True),
    )
    for semiring in KINDS:
        got = torch.autograd.grad(tgt.matmul(a, b, semiring=semiring).sum(), (a, b))
        assert [g.dtype for g in got] == [dtype, dtype]
        same(got, torch.autograd.grad(formula(semiring)(a, b).sum(), (a, b)))


def test_autocast(device):
    x = {t: normal(4, 4, device=device, dtype=t) for t in (torch.float16, torch.bfloat16, torch.float32)}
    wide = normal(4, 4, device=device)
    for on in (torch.bfloat16, torch.float16):
        with torch.autocast(device, dtype=on):
            for s, a in x.items():
                for t, b in x.items():
                    dtype = torch.promote_types(s, t)
                    c = tg.matmul(a, b)
                    assert c.dtype == dtype
                    same(c, tgt.matmul(a.to(dtype), b.to(dtype)))
                    into = torch.empty(4, 4, dtype=dtype, device=device)
                    same(tgt.matmul(a, b, out=into), c)
            assert tgt.matmul(wide, wide).dtype == torch.float64
            with pytest.raises(TypeError, match="b has dtype float32, expected float64"):
                tgt.matmul(wide, x[torch.float32])
            a = x[torch.float16].clone().requires_grad_()
            b = x[torch.float32].clone().requires_grad_()
            tgt.matmul(a, b, semiring="max_mul").sum().backward()
            assert (a.grad.dtype, b.grad.dtype) == (torch.float16, torch.float32)
    with pytest.raises(TypeError, match="b has dtype float32, expected float16"):
        tgt.matmul(x[torch.float16], x[torch.float32])


def test_a_shared_weight_takes_no_more_memory_than_its_parts(device):
    # The formula would need a candidate for each (b, t, k, n): 10.7 GB and more.
    batch, time, depth, width = 16, 128, 512, 2560
    assert 4 * batch * time * depth * width > 10e9
    parts = 4 * (batch * time * width + batch * time * depth + depth * width)
    if device == "cpu" and not Path("/proc/self/status").exists():
        pytest.skip("no /proc to ask for the peak")
    # A process of its own, whose memory nothing else has raised.
    program = PEAK.format(device=device, x=(batch, time, depth), w=(depth, width))
    said = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, timeout=300
    ).stdout
    peak = int(said)
    assert parts / 4 <= peak <= 4 * parts, f"{peak / parts:.2f} times the operands and the result"


PEAK = """
import re, torch
from tropical_gemm.torch import matmul
def used():
    if "{device}" == "cuda":
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()
    return 1024 * int(re.search("VmHWM:(.*)kB", open("/proc/self/status").read())[1])
small = torch.randn(2, 3, 3, device="{device}", requires_grad=True)
matmul(small, small[0]).sum().backward()
x, w = (torch.randn(s, device="{device}", requires_grad=True) for s in ({x}, {w}))
before = used()
c = matmul(x, w)
c.sum().backward()
after = used()
# Each output sends its one to one row and one column.
assert (w.grad.sum(0) == c[0].numel() * len(c) / w.shape[1]).all() and (x.grad.sum(-1) == w.shape[1]).all()
print(after - before)
"""


@needs_gpu
def test_tensors_of_two_devices():
    a = normal(4, 4, device="cuda:0", grad=True)
    with pytest.raises(ValueError, match="a is on cuda:0 and b is on the CPU"):
        tgt.matmul(a, normal(4, 4))


def test_refusals():
    a, b = normal(4, 5, grad=True), normal(5, 3)
    with pytest.raises(ValueError, match="'max_add_plus', expected one of max_plus, min_plus"):
        tgt.matmul(a, b, semiring="max_add_plus")
    with pytest.raises(TypeError, match="semiring is of type int"):
        tgt.matmul(a, b, semiring=3)
    with pytest.raises(ValueError, match=r"a has shape \(4, 5\) and b has shape \(4, 5\)"):
        tgt.matmul(a, a)
    with pytest.raises(TypeError, match="b has dtype float32, expected float64"):
        tgt.matmul(a, b.float())
    with pytest.raises(TypeError, match="or_and"):
        tgt.matmul(a, b, semiring="or_and")
    with pytest.raises(ValueError, match="a has 0 dimensions"):
        tgt.matmul(a.sum(), b)
    with pytest.raises(TypeError, match=r"a is of type torch.Tensor and b is of type numpy.ndarray"):
        tgt.matmul(a, b.numpy())
    with pytest.raises(TypeError, match="a is of type list"):
        tgt.matmul([[1.0]], b)
    with pytest.raises(ValueError, match="argmax_offset is 3 but no argmax"):
        tgt.matmul(a, b, argmax_offset=3)
    with pytest.raises(ValueError, match="stream is"):
        tgt.matmul(a, b, stream=5)
    integers = torch.ones(3, 3, dtype=torch.int32)
    assert tgt.matmul(integers, integers).tolist() == [[2] * 3] * 3
    with pytest.raises(TypeError, match="gradients exist for"):
        tg.matmul_backward(integers, integers, integers, integers)
    for nested in (
        torch.nested.nested_tensor([b, b[:2]]),
        torch.nested.nested_tensor([b, b[:2]], layout=torch.jagged),
        torch.nested.nested_tensor([b, b[:2]], requires_grad=True),
    ):
        with pytest.raises(TypeError, match="b is a nested tensor"):
            tg.matmul(b.mT, nested)
