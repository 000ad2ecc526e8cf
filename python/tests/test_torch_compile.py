"""Under torch.compile, torch.export, torch.library.opcheck and make_fx."""

import subprocess
import sys

import pytest
import tropical_gemm as tg
import tropical_gemm.torch as tgt
from gpu import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch.fx.experimental.proxy_tensor import make_fx
from torch.library import opcheck
from torch_cases import DEVICES, KINDS, formula, normal, same

operators = torch.ops.tropical_gemm


@pytest.fixture(params=DEVICES)
def device(request):
    torch._dynamo.reset()
    return request.param


def compiled(function, backend="aot_eager", **options):
    return torch.compile(function, fullgraph=True, backend=backend, **options)


def gradients(function, *operands):
    return torch.autograd.grad(function(*operands).sin().sum(), operands)


@pytest.mark.parametrize("semiring", KINDS)
@pytest.mark.parametrize("product", [tg.matmul, tgt.matmul], ids=["tg", "torch"])
def test_compile(device, semiring, product):
    a, b = normal(2, 4, 5, device=device, grad=True), normal(5, 3, device=device, grad=True)
    fast = compiled(lambda a, b: product(a, b, semiring=semiring.replace("_", "-")))
    same(fast(a, b), formula(semiring)(a, b))
    same(gradients(fast, a, b), gradients(formula(semiring), a, b))
    with torch.no_grad():
        same(fast(a, b), formula(semiring)(a, b))
    same(fast(a[0, 0].detach(), b.detach()), formula(semiring)(a[0, :1], b)[0].detach())


@pytest.mark.parametrize("semiring", KINDS)
def test_inductor(device, semiring):
    layer = tgt.TropicalLinear(5, 3, semiring, device=device, dtype=torch.float64)
    a, b = normal(4, 5, device=device, grad=True), normal(5, 5, device=device, grad=True)

    def network(a, b):
        return layer(tgt.matmul(a.sin(), b, semiring=semiring) * 2)

    same(gradients(compiled(network, "inductor"), a, b), gradients(network, a, b))


def test_dynamic_shapes(device):
    tg.matmul(
        normal(2, 2, device=device), normal(2, 2, device=device)
    )  # imports what the compiler would see change
    counter = CompileCounterWithBackend("aot_eager")
    fast = compiled(lambda a, b: tg.matmul(a, b, semiring="max_mul"), counter, dynamic=True)
    for m, k, n in ((4, 5, 3), (7, 9, 2), (6, 3, 8)):
        a, b = normal(2, m, k, device=device, grad=True), normal(k, n, device=device, grad=True)
        same(gradients(fast, a, b), gradients(formula("max_mul"), a, b))
    assert counter.frame_count == 1


def test_sizes_that_data_decides(device):
    a, b = normal(6, 5, device=device, grad=True), normal(5, 3, device=device, grad=True)
    keep = torch.tensor([True, False, True, True, False, True], device=device)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        rows = compiled(lambda a, b, keep: tgt.matmul(a[keep], b))
        same(rows(a, b, keep), tgt.matmul(a[keep], b))
        depth = compiled(lambda a, keep, too: tgt.matmul(a.mT[:, keep], a[too]))
        same(depth(a, keep, keep.clone()), tgt.matmul(a.mT[:, keep], a[keep]))
        with pytest.raises(RuntimeError):
            depth(a, keep, ~keep)


def test_what_else_a_call_can_say(device):
    a, b = normal(4, 5, device=device), normal(5, 3, device=device)
    out, index = (
        torch.zeros(4, 3, dtype=a.dtype, device=device),
        torch.zeros(4, 3, dtype=torch.int32, device=device),
    )

    def everything(a, b, out, index):
        made = tgt.matmul(a, b, return_argmax=True, argmax_offset=2, threads=1)
        tgt.matmul(a, b, out=(out, index), semiring="min_plus")
        into = tgt.matmul(a, b, out=out, accumulate=True, semiring="min_plus")
        return made.values + 1, made.argmax, into * 1

    values, argmax, into = compiled(everything)(a, b, out, index)
    expected = tg.matmul(a, b, return_argmax=True, argmax_offset=2)
    least = tg.matmul(a, b, return_argmax=True, semiring="min_plus")
    same((values, argmax), (expected.values + 1, expected.argmax))
    same((out, index, into), (least.values, least.argmax, least.values))
    row = torch.zeros(3, dtype=a.dtype, device=device)
    compiled(lambda a, b, row: tgt.matmul(a, b, out=row) * 1)(a[0], b, row)
    same(row, tg.matmul(a[0], b))


def test_autocast(device):
    a, b = normal(4, 5, device=device, dtype=torch.bfloat16), normal(5, 3, device=device, dtype=torch.float32)

    def product(a, b):
        with torch.autocast(device, dtype=torch.bfloat16):
            return tgt.matmul(a, b)

    assert compiled(product)(a, b).dtype == torch.float32
    same(compiled(product)(a, b), tgt.matmul(a.float(), b))


def test_transforms_of_torch_func(device):
    x, y = normal(6, 4, 5, device=device), normal(5, 3, device=device)
    tangents = normal(6, 4, 5, device=device, seed=1)
    for semiring in KINDS:
        torch._dynamo.reset()  # torch 2.11 takes the code of one semiring for that of the next

        def of(product):
            def loss(a, b):
                return product(a, b).sin().sum()

            return {
                "vmap": lambda a, b: torch.vmap(product, (0, None))(a, b),
                "grad": lambda a, b: torch.func.grad(loss, (0, 1))(a, b),
                "vmap of grad": lambda a, b: torch.vmap(torch.func.grad(loss, (0, 1)), (0, None))(a, b),
                "grad of vmap": lambda a, b: torch.func.grad(
                    lambda a, b: torch.vmap(product, (0, None))(a, b).sin().sum(), (0, 1)
                )(a, b),
                "jvp": lambda a, b: torch.func.jvp(lambda a: product(a, b), (a,), (tangents,)),
            }

        ours, expected = of(lambda a, b, s=semiring: tgt.matmul(a, b, semiring=s)), of(formula(semiring))
        for name in ours:
            same(
                compiled(ours[name])(x, y),
                expected[name](x, y),
                msg=lambda text, name=name: f"{name}: {text}",
            )


def test_errors_name_the_argument(device):
    a, b = normal(4, 5, device=device), normal(5, 3, device=device)
    for says, call in {
        "expected one of max_plus": lambda: tgt.matmul(a, b, semiring="plus"),
        r"a has shape \(4, 5\) and b has shape \(4, 5\)": lambda: tgt.matmul(a, a),
        "b has dtype float32, expected float64": lambda: tgt.matmul(a, b.float()),
        "a has dtype float64, which the semiring or_and": lambda: tgt.matmul(a, b, semiring="or_and"),
        "out has shape": lambda: tgt.matmul(a, b, out=a),
        "leading axes": lambda: tgt.matmul(a.expand(2, 4, 5), b.expand(3, 5, 3)),
    }.items():
        with pytest.raises(torch._dynamo.exc.TorchRuntimeError, match=says):
            compiled(call)()


def test_the_first_tensor_may_come_under_compile():
    # A process of its own, in which nothing has imported tropical_gemm.torch.
    program = """
import torch, tropical_gemm as tg
a = torch.eye(3, requires_grad=True)
c = torch.compile(lambda a: tg.matmul(a, a), fullgraph=True, backend="aot_eager")(a)
c.sum().backward()
assert c.tolist() == [[2, 1, 1], [1, 2, 1], [1, 1, 2]], c
assert a.grad.sum() == 18
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


class Network(torch.nn.Module):
    def __init__(self, semiring):
        super().__init__()
        self.layer = tgt.TropicalLinear(5, 3, semiring, dtype=torch.float64)

    def forward(self, x):
        return self.layer(x)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("semiring", KINDS)
def test_export(device, semiring, strict):
    network, x = Network(semiring).to(device), normal(4, 5, device=device)
    batch = torch.export.Dim("batch")
    program = torch.export.export(network, (x,), dynamic_shapes=({0: batch},), strict=strict)
    targets = {node.target for node in program.graph.nodes}
    assert operators.matmul.default in targets
    again = program.module()
    for rows in (4, 7):
        z = normal(rows, 5, device=device)
        same(again(z), network(z))
    again(x).sin().sum().backward()  # what was exported can be trained
    network(x).sin().sum().backward()
    parameters = dict(again.named_parameters())
    same(parameters["layer.weight"].grad, network.layer.weight.grad)
    same(parameters["layer.bias"].grad, network.layer.bias.grad)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("semiring", KINDS)
def test_opcheck(device, semiring, grad):
    a, b = normal(2, 4, 5, device=device, grad=grad), normal(5, 3, device=device, grad=grad)
    opcheck(operators.matmul, (a, b, semiring, None))
    opcheck(operators.matmul_argmax, (a, b, semiring, 3, 1))
    x, y = a.detach(), b.detach()
    values, argmax = operators.matmul_argmax(x, y, semiring, 0, None)
    opcheck(operators.matmul_into, (x, y, values.clone(), None, semiring, True, 0, None))
    opcheck(operators.matmul_into, (x, y, values.clone(), argmax.clone(), semiring, False, 2, None))
    shapes = list(a.shape), list(b.shape)
    g = values.clone().requires_grad_(grad)
    operands = (None, None) if semiring == "max_plus" else (a, b)
    for needs in ((True, True), (True, False), (False, True)):
        opcheck(operators.matmul_backward, (g, argmax, *operands, *shapes, semiring, *needs, None))


def test_make_fx(device):
    a, b = normal(4, 5, device=device), normal(5, 3, device=device)
    for mode in ("real", "fake", "symbolic"):
        graph = make_fx(lambda a, b: tg.matmul(a, b, return_argmax=True), tracing_mode=mode)(a, b)
        called = [n.target for n in graph.graph.nodes if isinstance(n.target, torch._ops.OpOverload)]
        assert called == [operators.matmul_argmax.default]
        same(tuple(graph(a, b)), tuple(tg.matmul(a, b, return_argmax=True)))


def test_jit_trace_and_the_profiler_see_the_operator(device):
    a, b = normal(4, 5, device=device), normal(5, 3, device=device)
    traced = torch.jit.trace(tg.matmul, (a, b))
    same(traced(2 * a, b), tg.matmul(2 * a, b))
    with torch.profiler.profile() as profile:
        tg.matmul(a, b)
    assert "tropical_gemm::matmul" in {event.key for event in profile.key_averages()}
