"""Alignment of torch tensors: gradients, and torch's transforms."""

import pytest
import tropical_gemm as tg

torch = pytest.importorskip("torch")
pytest.importorskip("tropical_gemm.torch")


def problem(seed, batch=3, steps=9, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    probs = torch.randn(batch, steps, 5, generator=g, dtype=dtype)
    targets = torch.randint(1, 5, (batch, 3), generator=g)
    return probs, targets, torch.tensor([steps, 4, 2]), torch.tensor([3, 2, 3])


def test_scores_are_elements():
    probs, *rest = problem(0)
    probs.requires_grad_()
    labels, scores = tg.forced_align(probs, *rest)
    expected = tg.forced_align(probs.detach().numpy(), *(x.numpy() for x in rest))
    assert (labels.numpy() == expected.labels).all()
    assert (scores.detach().numpy() == expected.scores).all()
    assert (labels[2] == -1).all()  # three targets do not fit into two steps
    scores[:2].sum().backward()
    on = torch.nn.functional.one_hot(labels.clamp(min=0), 5) * (labels >= 0)[..., None]
    assert torch.equal(probs.grad, on.to(probs.dtype))


def test_operator():
    probs, targets, inputs, lengths = problem(1, dtype=torch.float32)
    torch.library.opcheck(
        torch.ops.tropical_gemm.forced_align.default, (probs, targets, inputs, None, 0, None)
    )
    torch.library.opcheck(
        torch.ops.tropical_gemm.forced_align.default, (probs[:1], targets[:1], None, lengths[:1], 0, None)
    )


def test_vmap():
    tensors = problem(2)
    expected = tg.forced_align(*tensors)
    got = torch.func.vmap(lambda *x: tuple(tg.forced_align(*x)))(*tensors)
    assert torch.equal(got[0], expected.labels)
    assert torch.equal(got[1], expected.scores)
    # Targets that all share, lengths of a narrow type.
    probs, targets, inputs, _ = tensors
    got = torch.func.vmap(lambda x, n: tg.forced_align(x, targets[0], n).labels)(
        probs, inputs.to(torch.uint8)
    )
    assert torch.equal(got, tg.forced_align(probs, targets[:1], inputs).labels)


@pytest.mark.parametrize("lengths", [False, True])
def test_compile(lengths):
    torch._dynamo.reset()
    probs, targets, inputs, _ = problem(3)
    given = inputs.tolist() if lengths else inputs
    align = lambda x: tg.forced_align(x, targets, given).scores  # noqa: E731
    compiled = torch.compile(align, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(probs), align(probs))


def test_checks():
    probs, targets, *_ = problem(4)
    with pytest.raises(ValueError, match=r"input_lengths holds 10, expected values in \[0, 9\]"):
        tg.forced_align(probs, targets, torch.tensor([10, 1, 1]))
    with pytest.raises(ValueError, match=r"targets holds 0, expected classes in \[0, 5\) other than blank=0"):
        torch.func.vmap(lambda x: tg.forced_align(x, targets[0] * 0).labels)(probs)
