"""Tensors on a GPU in training: streams, CUDA graphs, no wait of the host, memory, mixed precision."""

import pytest
import tropical_gemm as tg
import tropical_gemm.torch as tgt
from gpu import needs_gpu, spin, torch
from torch_cases import KINDS, SEMIRINGS, formula, normal, same

pytestmark = needs_gpu


def operands(*shapes, dtype=torch.float32):
    return [normal(*s, device="cuda", dtype=dtype, grad=True, seed=i) for i, s in enumerate(shapes)]


@pytest.mark.parametrize("semiring", SEMIRINGS)
@pytest.mark.parametrize(
    "shapes", [((130, 70), (70, 90)), ((3, 40, 65), (65, 33)), ((2, 1, 9, 5), (3, 5, 6))], ids=str
)
def test_as_on_the_cpu(semiring, shapes):
    a, b = operands(*shapes)
    c, argmax = tgt.matmul(a, b, semiring=semiring, return_argmax=True)
    x, y = (v.detach().cpu().requires_grad_() for v in (a, b))
    z, indices = tgt.matmul(x, y, semiring=semiring, return_argmax=True)
    same((c.cpu(), argmax.cpu()), (z, indices), rtol=0, atol=0)
    weight = normal(*z.shape, dtype=torch.float32)
    got = torch.autograd.grad(c, (a, b), weight.cuda())
    same(tuple(g.cpu() for g in got), torch.autograd.grad(z, (x, y), weight), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("semiring", KINDS)
def test_graphed_callables(semiring):
    layer = tgt.TropicalLinear(40, 30, semiring, device="cuda")
    sample = normal(8, 40, device="cuda", dtype=torch.float32, grad=True)
    graphed = torch.cuda.make_graphed_callables(
        tgt.TropicalLinear(40, 30, semiring, device="cuda"), (sample,)
    )
    graphed.load_state_dict(layer.state_dict())
    for seed in range(3):
        x = normal(8, 40, device="cuda", dtype=torch.float32, grad=True, seed=seed)
        results = []
        for module in (graphed, layer):
            module.zero_grad()
            x.grad = None
            y = module(x)
            y.sin().sum().backward()
            results.append(
                (y.detach().clone(), x.grad.clone(), *(p.grad.clone() for p in module.parameters()))
            )
        same(*results)


def test_a_whole_step_in_a_graph():
    torch.manual_seed(0)
    layer = tgt.TropicalLinear(40, 30, device="cuda")
    start = {k: v.clone() for k, v in layer.state_dict().items()}
    x, y = torch.randn(8, 40, device="cuda"), torch.randn(8, 30, device="cuda")
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = (layer(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        step()
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    layer.load_state_dict(start)
    replayed = []
    for _ in range(4):
        graph.replay()
        replayed.append(loss.item())
    layer.load_state_dict(start)
    same(replayed, [step().item() for _ in range(4)])


@pytest.mark.parametrize("how", ["context", "argument"])
def test_side_streams(how):
    a, b = operands((200, 200), (200, 200))
    expected = torch.autograd.grad(tgt.matmul(a, b).sin().sum(), (a, b))
    late = [torch.zeros_like(v).requires_grad_() for v in (a, b)]
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        spin(50)
        with torch.no_grad():
            for to, v in zip(late, (a, b), strict=True):
                to.copy_(v)
        c = tgt.matmul(*late) if how == "context" else None
    if how == "argument":
        c = tgt.matmul(*late, stream=side)
    with torch.cuda.stream(side):
        loss = c.sin().sum()
    got = torch.autograd.grad(loss, late)  # on the stream of the forward pass
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    same(got, expected)


def without_waiting(work):
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        return work()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("semiring", KINDS)
def test_the_host_never_waits(semiring):
    a, b = operands((3, 40, 65), (65, 33), dtype=torch.float64)
    layer = tgt.TropicalLinear(33, 20, semiring, device="cuda", dtype=torch.float64)
    optimizer = torch.optim.Adam(layer.parameters(), capturable=True)

    def step():
        c = layer(tgt.matmul(a, b, semiring=semiring))
        grads = torch.autograd.grad(c.sin().sum(), (a, b, *layer.parameters()), create_graph=True)
        sum(g.square().sum() for g in grads).backward()
        optimizer.step()
        torch.vmap(lambda a: tgt.matmul(a, b, semiring=semiring))(a)

    step()
    without_waiting(step)


def test_no_waiting_with_single_calls():
    a, b = (v.detach() for v in operands((64, 64), (64, 64)))
    out = torch.empty_like(a)

    def calls():
        argmax = tg.matmul(a, b, return_argmax=True).argmax
        tg.matmul(a, b, out=out)
        tg.matmul_backward(a, argmax, a, b)

    calls()
    without_waiting(calls)


def test_inductor_with_cuda_graphs():
    torch._dynamo.reset()
    network = torch.nn.Sequential(torch.nn.Linear(20, 40), tgt.TropicalLinear(40, 30), torch.nn.ReLU()).cuda()
    fast = torch.compile(network, mode="reduce-overhead", fullgraph=True)
    for seed in range(4):
        x = normal(8, 20, device="cuda", dtype=torch.float32, seed=seed)
        torch.compiler.cudagraph_mark_step_begin()
        results = []
        for model in (fast, network):
            network.zero_grad()
            y = model(x)
            y.square().sum().backward()
            results.append((y.detach().clone(), *(p.grad.clone() for p in network.parameters())))
        same(*results, rtol=1e-4, atol=1e-4)


def test_mixed_precision_training():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(20, 40), tgt.TropicalLinear(40, 30)).cuda()
    scaler, optimizer = torch.amp.GradScaler("cuda"), torch.optim.SGD(network.parameters(), 0.01)
    x, y = torch.randn(64, 20, device="cuda"), torch.randn(64, 30, device="cuda")
    losses = []
    for _ in range(20):
        with torch.autocast("cuda", dtype=torch.float16):
            hidden = network[0](x)
            assert hidden.dtype == torch.float16
            out = network[1](hidden)
            assert out.dtype == torch.float32  # the weight's: promoted, not narrowed
            loss = (out - y).square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    same(formula("max_plus")(hidden.float(), network[1].weight.mT).shape, out.shape)
