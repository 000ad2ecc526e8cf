"""Gradients of Viterbi scores on torch tensors, under its transforms too."""

import numpy as np
import pytest
import trellis
import tropical_gemm as tg

torch = pytest.importorskip("torch")
pytest.importorskip("tropical_gemm.torch")


def problem(seed, batch=(3,), steps=6, states=4, each=False, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    square = (*batch, steps - 1, states, states) if each else (states, states)
    shapes = ((*batch, steps, states), square, (states,), (*batch, states))
    return [torch.randn(s, generator=g, dtype=dtype) for s in shapes]


def indicators(e, a, first, last, path):
    """Where a path goes, for one sequence: the gradients of its score."""
    grads = [np.zeros(x.shape) for x in (e, a, first, last)]
    states = [s for s in path if s >= 0]
    for t, s in enumerate(states):
        grads[0][t, s] += 1
        if t:
            grads[1][(states[t - 1], s) if a.ndim == 2 else (t - 1, states[t - 1], s)] += 1
    if states:
        grads[2][states[0]] += 1
        grads[3][states[-1]] += 1
    return grads


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("lengths", [None, [6, 2, 0]])
def test_gradient_is_the_path(each, lengths):
    tensors = [x.requires_grad_() for x in problem(0, each=each)]
    paths, scores = tg.viterbi(*tensors, lengths=lengths)
    expected = trellis.batched(*(x.detach().numpy() for x in tensors), lengths)
    np.testing.assert_array_equal(scores.detach().numpy(), expected[1])
    scores.sum().backward()
    totals = [np.zeros(x.shape) for x in tensors]
    for b in range(3):
        e, a, first, last = (x.detach().numpy() for x in tensors)
        one = indicators(e[b], a[b] if each else a, first, last[b], paths[b].tolist())
        for i, grad in enumerate(one):
            totals[i][b if i in (0, 3) or (i == 1 and each) else ...] += grad
    for x, total in zip(tensors, totals, strict=True):
        np.testing.assert_array_equal(x.grad.numpy(), total)


def test_impossible_and_half():
    e = torch.zeros(2, 3, 2, dtype=torch.float16)
    e[1, 1] = -torch.inf
    e.requires_grad_()
    scores = tg.viterbi(e, torch.zeros(2, 2, dtype=torch.float16)).scores
    assert scores.tolist() == [0, -torch.inf]
    scores[0].backward()
    assert e.grad.dtype == torch.float16
    assert e.grad[0, :, 0].eq(1).all()
    assert not e.grad[1].any()


def test_half_sums_may_leave_the_range_of_half():
    e = torch.full((5000, 2), -20.0, dtype=torch.float16, requires_grad=True)
    tg.viterbi(e, torch.full((2, 2), -1.0, dtype=torch.float16)).scores.backward()
    assert e.grad.float().sum() == 5000


def test_gradient_of_a_shared_matrix_takes_its_own_memory():
    e, a = torch.zeros(400, 200), torch.zeros(200, 200, requires_grad=True)
    scores = tg.viterbi(e, a).scores
    with torch.profiler.profile(profile_memory=True) as profile:
        scores.backward()
    assert max(event.cpu_memory_usage for event in profile.events()) < 4 << 20  # not steps x states x states
    assert a.grad.sum() == 399


def test_gradcheck():
    tensors = [x.requires_grad_() for x in problem(1)]
    score = lambda *x: tg.viterbi(*x).scores  # noqa: E731
    assert torch.autograd.gradcheck(score, tensors)
    assert torch.autograd.gradcheck(score, tensors, check_forward_ad=True, check_batched_grad=True)


def test_operator():
    e, a, first, last = problem(2, dtype=torch.float32)
    arguments = (e, a, first, last, torch.tensor([6, 1, 3]), False, None)
    torch.library.opcheck(torch.ops.tropical_gemm.viterbi.default, arguments)


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_vmap(which):
    many = [problem(seed, batch=(2,)) for seed in range(3)]
    x = list(many[0])
    x[which] = torch.stack([p[which] for p in many])
    dims = tuple(0 if i == which else None for i in range(4))
    got = torch.func.vmap(lambda *a: tuple(tg.viterbi(*a)), in_dims=dims)(*x)
    for i in range(3):
        one = tg.viterbi(*(y[i] if j == which else y for j, y in enumerate(x)))
        assert torch.equal(got[0][i], one.paths)
        assert torch.equal(got[1][i], one.scores)
    per_sample = torch.func.vmap(torch.func.grad(lambda e, a: tg.viterbi(e, a).scores.sum()), (0, None))
    e, a = many[0][:2]
    e = e.requires_grad_()
    tg.viterbi(e, a).scores.sum().backward()
    assert torch.equal(per_sample(e.detach(), a), e.grad)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(dynamic):
    torch._dynamo.reset()

    def loss(e, a, n):
        return tg.viterbi(e, a, lengths=n).scores.sum()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for steps in (6, 9):
        e, a, *_ = problem(steps, steps=steps)
        n = torch.tensor([steps, 2, 0])
        e.requires_grad_()
        compiled(e, a, n).backward()
        got, e.grad = e.grad, None
        loss(e, a, n).backward()
        assert torch.equal(got, e.grad)


def test_lengths_of_any_kind_under_transforms():
    torch._dynamo.reset()
    e, a, *_ = problem(4)
    expected = tg.viterbi(e, a, lengths=[6, 2, 0])
    compiled = torch.compile(
        lambda e, a: tg.viterbi(e, a, lengths=[6, 2, 0]), backend="aot_eager", fullgraph=True
    )
    assert torch.equal(compiled(e, a).paths, expected.paths)
    narrow = torch.tensor([6, 2, 0], dtype=torch.uint8)
    got = torch.func.vmap(lambda e, n: tuple(tg.viterbi(e, a, lengths=n)))(e, narrow)
    assert torch.equal(got[0], expected.paths)
    with pytest.raises(ValueError, match=r"lengths holds 7, expected values in \[0, 6\]"):
        torch.func.vmap(lambda e, n: tg.viterbi(e, a, lengths=n).scores)(e, narrow + 1)


@pytest.mark.parametrize("steps", [0, 1])
def test_what_a_short_sequence_does_not_pass_has_a_gradient_of_zeros(steps):
    e, a = torch.zeros(2, steps, 3), torch.zeros(3, 3)
    for x in (e, a):
        x.requires_grad_()
        tg.viterbi(e, a).scores.sum().backward()
        assert x.grad.sum() == (2 * steps if x is e else 0)
        x.requires_grad_(False)


def test_lengths_on_the_host_are_checked():
    e, a, *_ = problem(3)
    with pytest.raises(ValueError, match=r"lengths holds 7, expected values in \[0, 6\]"):
        tg.viterbi(e, a, lengths=torch.tensor([7, 1, 1]))
    with pytest.warns(UserWarning, match="looks like probabilities"):
        tg.viterbi(e, torch.full((4, 4), 0.25, dtype=torch.float64))
