import itertools

import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from hypothesis import given
from hypothesis import strategies as st

inf = np.inf
ADD = {"max": np.maximum, "min": np.minimum, "or": np.logical_or}
MUL = {"plus": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum, "and": np.logical_and}


def brute(semiring, inputs, output, operands):
    """Every configuration of every label, with numpy.einsum's own view of what the labels mean."""
    add, mul = semiring.split("_")
    labels = list(dict.fromkeys(itertools.chain(*inputs)))
    sizes = {
        y: n for term, x in zip(inputs, operands, strict=True) for y, n in zip(term, x.shape, strict=True)
    }
    grid = None
    for term, x in zip(inputs, operands, strict=True):
        index = np.ix_(*(np.arange(sizes[y]) for y in labels))
        part = x[tuple(index[labels.index(y)] for y in term)]
        grid = part if grid is None else MUL[mul](grid, part)
    grid = np.broadcast_to(grid, [sizes[y] for y in labels])
    summed = tuple(i for i, y in enumerate(labels) if y not in output)
    left = [y for y in labels if y in output]
    if summed:
        grid = ADD[add[:3] if add != "or" else "or"].reduce(grid, axis=summed)
    return np.asarray(grid).transpose([left.index(y) for y in output])


@st.composite
def networks(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    semiring = draw(st.sampled_from(tg.semirings))
    count, names = draw(st.integers(1, 5)), "abcdefg"
    sizes = {y: draw(st.integers(1, 3)) for y in names}
    inputs = [draw(st.text(names, max_size=4)) for _ in range(count)]
    used = sorted(set("".join(inputs)))
    output = "".join(draw(st.permutations(used)))[: draw(st.integers(0, 3))]

    def make(term):
        shape = [sizes[y] for y in term]
        if semiring == "or_and":
            return rng.random(shape) < 0.6
        return rng.integers(1, 5, shape).astype(float)

    return (
        semiring,
        inputs,
        output,
        [np.asarray(make(t)) for t in inputs],
        draw(st.sampled_from((None, 64, 24))),
    )


@given(networks())
def test_meaning(network):
    semiring, inputs, output, operands, limit = network
    equation = ",".join(inputs) + "->" + output
    try:
        got = tg.einsum(equation, *operands, semiring=semiring, optimize="greedy", memory_limit=limit)
    except ValueError:
        with pytest.raises(ValueError, match="memory_limit allows"):
            tg.einsum(equation, *operands, semiring=semiring, optimize="greedy", memory_limit=limit)
        assert limit is not None
        return
    expected = brute(semiring, inputs, output, operands)
    np.testing.assert_array_equal(got, expected)
    lists = itertools.chain(*((x, list(t)) for x, t in zip(operands, inputs, strict=True)))
    np.testing.assert_array_equal(tg.einsum(*lists, list(output), semiring=semiring), expected)
    if output:
        return
    value, assignment = tg.einsum(
        equation, *operands, semiring=semiring, memory_limit=limit, optimize="greedy", return_assignment=True
    )
    assert value == expected
    assert set(assignment) == set("".join(inputs))
    mul, along = MUL[semiring.split("_")[1]], None
    for term, x in zip(inputs, operands, strict=True):
        part = x[tuple(assignment[y] for y in term)]
        along = part if along is None else mul(along, part)
    assert along == value


def test_ties_take_the_lowest():
    a, b = np.zeros((3, 4)), np.zeros((4, 3))
    got = tg.einsum("ij,ji->", a, b, semiring="min_plus", return_assignment=True)
    assert got == (0, {"i": 0, "j": 0})
    a[0, 0] = 1
    assert tg.einsum("ij->", a, semiring="min_plus", return_assignment=True).assignment == {"i": 0, "j": 1}
    everywhere = np.full((2, 2), -inf)
    assert tg.einsum("ij->", everywhere, semiring="max_plus", return_assignment=True) == (
        -inf,
        {"i": 0, "j": 0},
    )


def test_numpys_notation():
    rng = np.random.default_rng(0)
    a, b = rng.integers(1, 9, (2, 3, 4)).astype(float), rng.integers(1, 9, (2, 4, 5)).astype(float)
    expected = tg.matmul(a, b)
    for equation in (
        "nij,njk->nik",
        "...ij,...jk->...ik",
        "...ij,...jk",
        " n i j , n j k -> n i k ",
        "βij,βjk->βik",
    ):
        np.testing.assert_array_equal(tg.einsum(equation, a, b, semiring="max_plus"), expected)
    square = rng.normal(size=(4, 4))
    np.testing.assert_array_equal(tg.einsum("ii->i", square, semiring="max_plus"), square.diagonal())
    assert tg.einsum("ii", square, semiring="max_plus") == square.diagonal().max()
    np.testing.assert_array_equal(tg.einsum("ij->ji", square, semiring="max_plus"), square.T)
    np.testing.assert_array_equal(tg.einsum("ba", square, semiring="max_plus"), square.T)
    np.testing.assert_array_equal(
        tg.einsum("i,j", a[0, 0], b[0, 0], semiring="max_plus"), a[0, 0][:, None] + b[0, 0]
    )
    out = np.empty((4, 4))
    assert tg.einsum("ij->ji", square, semiring="max_plus", out=out) is out
    np.testing.assert_array_equal(out, square.T)


def test_any_labels():
    x = np.arange(6.0).reshape(2, 3)
    site, up = ("site", 1), "up"
    got = tg.einsum(x, [site, up], x, [site, 7], [7, up], semiring="max_plus")
    np.testing.assert_array_equal(got, tg.matmul(x.T, x).T)
    assert tg.einsum(x, [site, up], x, [site, up], semiring="max_plus") == 10


def test_two_hundred_tensors_of_a_ring():
    # More labels than letters; every bond is a hyperedge with a field on it.
    rng = np.random.default_rng(1)
    n = 100
    bonds, fields = rng.integers(-3, 4, (n, 2, 2)).astype(float), rng.integers(-2, 3, (n, 2)).astype(float)
    arguments = []
    for i in range(n):
        arguments += [bonds[i], [i, (i + 1) % n], fields[i], [i]]
    value, assignment = tg.einsum(
        *arguments, [], semiring="min_plus", optimize="greedy", return_assignment=True
    )
    ring = np.full((2, 2), inf)
    np.fill_diagonal(ring, 0)
    for i in range(n):
        ring = (ring[:, :, None] + (fields[i][:, None] + bonds[i])[None]).min(axis=1)
    assert value == ring.diagonal().min()
    s = [assignment[i] for i in range(n)]
    assert value == sum(bonds[i][s[i], s[(i + 1) % n]] + fields[i][s[i]] for i in range(n))


def test_orders():
    cotengra = pytest.importorskip("cotengra")
    opt_einsum = pytest.importorskip("opt_einsum")
    rng = np.random.default_rng(2)
    terms = ["ab", "bc", "cd", "da", "ac"]
    operands = [rng.integers(0, 9, (3, 3)).astype(float) for _ in terms]
    equation = ",".join(terms) + "->"
    expected = brute("max_plus", terms, "", operands)
    tree = cotengra.array_contract_tree(terms, (), {y: 3 for y in "abcd"}, optimize="greedy")
    paths = [(0, 1)] * 4, [(0, 1, 2), (0, 1, 2)]
    for optimize in ("auto", "optimal", False, *paths, opt_einsum.RandomGreedy(max_repeats=2), tree):
        assert tg.einsum(equation, *operands, semiring="max_plus", optimize=optimize) == expected


def test_one_expression_for_many():
    rng = np.random.default_rng(3)
    chain = tg.contract_expression("nab,nbc,nca->n", (5, 2, 3), (5, 3, 4), (5, 4, 2), semiring="min_plus")
    for _ in range(3):
        operands = [rng.integers(0, 9, s).astype(np.int32) for s in ((5, 2, 3), (5, 3, 4), (5, 4, 2))]
        got = chain(*operands)
        assert got.dtype == np.int32
        np.testing.assert_array_equal(got, brute("min_plus", ["nab", "nbc", "nca"], "n", operands))
    with pytest.raises(ValueError, match=r"operands\[0\] has shape \(1, 2, 3\), expected \(5, 2, 3\)"):
        chain(operands[0][:1], *operands[1:])
    with pytest.raises(ValueError, match="2 operands came, expected 3"):
        chain(*operands[:2])


def test_other_kinds():
    rng = np.random.default_rng(4)
    operands = [rng.integers(0, 9, s).astype(np.float32) for s in ((2, 3), (3, 4), (4, 2))]
    expected = tg.einsum("ab,bc,ca->", *operands, semiring="max_plus", return_assignment=True)
    torch = pytest.importorskip("torch")
    got = tg.einsum(
        "ab,bc,ca->", *map(torch.from_numpy, operands), semiring="max_plus", return_assignment=True
    )
    assert isinstance(got.value, torch.Tensor)
    assert got.value.shape == ()
    assert (float(got.value), got.assignment) == (expected.value, expected.assignment)
    assert torch.equal(tg.einsum("ii->i", torch.eye(3), semiring="max_mul"), torch.ones(3))
    jnp = pytest.importorskip("jax.numpy")
    got = tg.einsum("ab,bc,ca->", *map(jnp.asarray, operands), semiring="max_plus", return_assignment=True)
    assert (float(got.value), got.assignment) == (expected.value, expected.assignment)
    np.testing.assert_array_equal(
        tg.einsum("iij->ij", jnp.ones((2, 2, 3)), semiring="max_plus"), np.ones((2, 3))
    )


def test_gradients():
    torch = pytest.importorskip("torch")
    g = torch.Generator().manual_seed(0)
    a, b, c = (
        torch.randn(s, generator=g, dtype=torch.float64, requires_grad=True) for s in ((3, 4), (4, 5), (5, 3))
    )
    chain = lambda *x: tg.einsum("ij,jk,ki->i", *x, semiring="max_plus", memory_limit=100)  # noqa: E731
    assert torch.autograd.gradcheck(chain, (a, b, c))
    assert torch.autograd.gradcheck(lambda x: tg.einsum("ii->", x[:, :3], semiring="min_plus"), (a,))


def test_rank():
    x = np.zeros((1,) * 30 + (2, 3))
    labels = list(range(32))
    assert tg.einsum(x, labels, x, labels, [31], semiring="max_plus").shape == (3,)
    assert tg.einsum(x, labels, x, [100 + i for i in range(32)], [5, 131], semiring="max_plus").shape == (
        1,
        3,
    )


M = np.zeros((2, 3))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        (("ij", M, M), {}, ValueError, "equation 'ij' has 1 terms for 2 operands"),
        (("ijk", M), {}, ValueError, r"operand 0 has shape \(2, 3\), but its term ijk has 3 labels"),
        (("ij,ij", M, M.T), {}, ValueError, "label 'i' has size 2 in operand 0 and 3 in operand 1"),
        (("ij->ik", M), {}, ValueError, "label 'k' of the result is in no operand"),
        (("ij->ii", M), {}, ValueError, "label 'i' is 2 times in the result ii"),
        (("i+j", M), {}, ValueError, r"holds '\+', expected letters"),
        (("...ijk", M), {}, ValueError, "has more labels than its operand axes, 2"),
        (("ij", [[1.0]]), {}, TypeError, r"operands\[0\] is of type list, .*use numpy.asarray"),
        ((M, "ij"), {}, TypeError, "the labels of operand 0 are of type str"),
        (
            ("ij,ij", M, M.astype(np.float32)),
            {},
            TypeError,
            r"operands\[1\] has dtype float32, expected float64",
        ),
        (("ij", M), {"semiring": "max"}, ValueError, "max"),
        (
            ("ij", M),
            {"semiring": "or_and"},
            TypeError,
            "the operands have dtype float64, which the semiring or_and",
        ),
        (
            ("ij->i", M),
            {"return_assignment": True},
            ValueError,
            "needs a result without labels, this one has i",
        ),
        (
            ("ij->i", M),
            {"out": np.empty(3)},
            ValueError,
            r"out has shape \(3,\) and dtype float64, expected \(2,\)",
        ),
        (("ij", M), {"memory_limit": 0}, ValueError, "memory_limit is 0, expected None or at least"),
        (
            ("ij,jk->ik", M, M.T),
            {"memory_limit": 8},
            ValueError,
            "memory_limit allows 1 elements, but what",
        ),
        (
            ("ij,jk,kl", M, M.T, M),
            {"optimize": [(0, 5)]},
            ValueError,
            r"optimize holds \(0, 5\), expected positions",
        ),
        (("ij,jk,kl", M, M.T, M), {"optimize": [(0, 1)]}, ValueError, "optimize leaves 2 operands"),
        (("ij,jk,kl", M, M.T, M), {"optimize": [1, 2]}, TypeError, "optimize holds 1, expected tuples"),
        (("ij,jk,kl", M, M.T, M), {"optimize": 5}, TypeError, "optimize is of type int, expected a name"),
        (("ij,jk,kl", M, M.T, M), {"optimize": "best"}, ValueError, "'best', which opt_einsum does not know"),
        (("ij", M), {"semiring": None}, TypeError, "semiring is of type NoneType, expected a str"),
        (("ij", M), {"memory_limit": 2.5}, TypeError, "memory_limit is of type float, expected None or a"),
        (("ij->", M), {"out": [1.0]}, TypeError, "out is of type list, expected an array"),
        (
            ("ij->j", M),
            {"out": np.broadcast_to(np.zeros(1), 3)},
            ValueError,
            r"out of shape \(3,\) has a stride of 0",
        ),
        ((M, [[0], 1]), {}, TypeError, r"the labels of operand 0 hold \[0\], expected what can be hashed"),
        (("ij->ij", M), {"semiring": "count_max_mul"}, ValueError, "semiring is count_max_mul, expected"),
        (
            ("ij->ij", M.astype(np.float16)),
            {"semiring": "count_max_plus"},
            TypeError,
            "are counted are float32",
        ),
        (
            ("ij->ij", (M, M.astype(np.int32))),
            {"semiring": "count_max_plus"},
            TypeError,
            r"the counts of operands\[0\] have dtype int32, expected",
        ),
    ],
)
def test_bad_input(arguments, options, error, text):
    with pytest.raises(error, match=text):
        tg.einsum(*arguments, **{"semiring": "max_plus", **options})


@pytest.mark.parametrize(
    ("shapes", "text"),
    [((2, 2), "the shape of operand 0 is 2"), (((-2,), (2,)), r"is \(-2,\)"), ((M, M), "operand 0 is array")],
)
def test_bad_shapes(shapes, text):
    with pytest.raises(TypeError, match=text):
        tg.contract_expression("i,i->", *shapes, semiring="max_plus")


def test_tuples_that_are_no_pairs():
    for x in ((M,), (M, M, M)):
        count = tg.contract_expression("ij->", (2, 3), semiring="count_max_plus")
        with pytest.raises(ValueError, match=r"operands\[0\] is a tuple of"):
            count(x)


def one(value, dtype):
    return np.array([value], dtype)


def test_integers_are_exact_or_refused():
    # A sum on the way leaves int32 or int16, the result does not: in whatever order.
    for path in ([(0, 1), (0, 1)], [(1, 2), (0, 1)]):
        operands = [one(x, np.int32) for x in (2**31 - 10, 100, -100)]
        got = tg.einsum("i,i,i->", *operands, semiring="max_plus", optimize=path)
        assert (got, got.dtype) == (2**31 - 10, np.int32)
    small = [one(x, np.int16) for x in (30000, 10000, -20000)]
    assert tg.einsum("i,i,i->i", *small, semiring="min_plus", optimize=False).tolist() == [20000]
    with pytest.raises(OverflowError, match="a value of the result does not fit int32"):
        tg.einsum("i,i->", one(2**30, np.int32), one(2**30, np.int32), semiring="max_plus")
    with pytest.raises(OverflowError, match="does not fit int16"):
        tg.einsum("i,i->i", one(-200, np.int16), one(200, np.int16), semiring="max_mul")
    with pytest.raises(OverflowError, match="may not fit int64"):
        tg.einsum("i,i->", one(2**62, np.int64), one(2**62, np.int64), semiring="max_plus")
    # The zero is none of them, and stays.
    low = np.array([-(2**31), 2**31 - 20], np.int32)
    got = tg.einsum("i,i->i", low, np.full(2, 10, np.int32), semiring="max_plus")
    assert got.tolist() == [-(2**31), 2**31 - 10]
    torch = pytest.importorskip("torch")
    x = torch.tensor([2**31 - 10, 5], dtype=torch.int32)
    got = tg.einsum("i,i,i->i", x, x, -x, semiring="max_plus", optimize=False)
    assert torch.equal(got, x)


def test_memory_limit_counts_bytes():
    z = np.zeros((4, 4), np.float32)
    assert tg.einsum("ij,jk->ik", z, z, semiring="max_plus", memory_limit=64).shape == (4, 4)
    with pytest.raises(ValueError, match="memory_limit allows 15 elements"):
        tg.einsum("ij,jk->ik", z, z, semiring="max_plus", memory_limit=63)
    with pytest.raises(ValueError, match="memory_limit allows 10 elements"):
        tg.einsum("ij,jk->ik", z, z, semiring="count_max_plus", memory_limit=128)


def lattice(n):
    """Terms of a square lattice of spins with a tensor on each bond."""
    return [(r * n + c, r * n + c + 1) for r in range(n) for c in range(n - 1)] + [
        (r * n + c, (r + 1) * n + c) for r in range(n - 1) for c in range(n)
    ]


def test_slicing_is_planned_soon():
    pytest.importorskip("opt_einsum")
    from tropical_gemm.algorithms.einsum._plan import make_plan
    from tropical_gemm.algorithms.einsum._terms import Terms

    terms = Terms(tuple(lattice(14)), ())
    plan = make_plan(terms, dict.fromkeys(range(196), 2), "greedy", 256)
    assert plan.largest <= 256
    assert plan.sliced


def test_slices_of_a_tree():
    cotengra = pytest.importorskip("cotengra")
    terms = lattice(4)
    rng = np.random.default_rng(5)
    bonds = [rng.integers(-3, 4, (2, 2)).astype(float) for _ in terms]
    tree = cotengra.array_contract_tree(terms, (), dict.fromkeys(range(16), 2), optimize="greedy")
    arguments = list(itertools.chain(*zip(bonds, map(list, terms), strict=True)))
    expected = tg.einsum(*arguments, [], semiring="min_plus", optimize="greedy")
    sliced = tree.slice(target_size=4)
    assert sliced.sliced_inds
    assert tg.einsum(*arguments, [], semiring="min_plus", optimize=sliced) == expected


def test_tensors_in_between_are_given_up():
    import tracemalloc

    # A chain of products of 2 MB: two live at a time.
    x = np.zeros((512, 512))
    chain = tg.contract_expression(
        "ab,bc,cd,de,ef,fg,gh->ah", *[(512, 512)] * 7, semiring="max_plus", optimize=False
    )
    chain(*[x] * 7)
    tracemalloc.start()
    chain(*[x] * 7)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3.5 * x.nbytes


def test_any_layout_of_the_axes():
    # Sums and batches at any place among the axes of a large tensor, which is then used as it lies or copied.
    rng = np.random.default_rng(6)
    names = "abcdefgh"
    for _ in range(60):
        large = "".join(rng.permutation(list(names)))
        small = "".join(rng.permutation([*rng.choice(list(names), 3, replace=False), "x"]))
        kept = [y for y in names + "x" if rng.random() < 0.7]
        output = "".join(rng.permutation(kept))
        a = rng.integers(-9, 9, (2, 3) * 4).astype(float)
        sizes = dict(zip(large, a.shape, strict=True))
        b = rng.integers(-9, 9, [sizes.get(y, 2) for y in small]).astype(float)
        for terms, operands in (([large, small], [a, b]), ([small, large], [b, a])):
            got = tg.einsum(",".join(terms) + "->" + output, *operands, semiring="max_plus")
            np.testing.assert_array_equal(got, brute("max_plus", terms, output, operands))


def test_counts_of_one_operand():
    assert tg.einsum("ij->i", np.zeros((0, 2)), semiring="count_max_plus").counts.shape == (0,)
    got = tg.einsum("i->i", (np.array([-inf, np.nan, 1]), np.array([5.0, 5, 5])), semiring="count_max_plus")
    assert got.counts.tolist() == [0, 0, 5]


def test_results_are_operands():
    x = np.arange(3.0)
    top = tg.einsum("i->", x, semiring="max_plus")
    assert tg.einsum("i,->", x, top, semiring="max_plus") == 4


def test_compiled():
    # The order is looked for outside: opt_einsum cannot be traced.
    torch = pytest.importorskip("torch")
    a, b, c = (torch.randn(3, 3) for _ in range(3))
    chain = tg.contract_expression("ij,jk,kl->il", *[(3, 3)] * 3, semiring="max_plus")
    compiled = torch.compile(lambda *x: chain(*x), fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(a, b, c), chain(a, b, c))


def test_out_records_no_gradient():
    torch = pytest.importorskip("torch")
    x = torch.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="records none"):
        tg.einsum("i->i", x, semiring="max_plus", out=torch.empty(2))


def test_dtypes_of_the_oracle():
    for semiring, dtype in oracle.PAIRS:
        x = np.ones((2, 2), oracle.DTYPES[dtype])
        assert tg.einsum("ij,jk->ik", x, x, semiring=semiring).dtype == x.dtype
        assert tg.einsum("ij->i", x, semiring=semiring).dtype == x.dtype


@given(networks())
def test_counts(network):
    _, inputs, output, operands, limit = network
    for semiring, best in (("count_max_plus", np.max), ("count_min_plus", np.min)):
        values = [np.asarray(np.floor(y.astype(float) / 2)) for y in operands]
        try:
            got = tg.einsum(",".join(inputs) + "->" + output, *values, semiring=semiring, memory_limit=limit)
        except ValueError:
            continue
        labels = list(dict.fromkeys(itertools.chain(*inputs)))
        sizes = {y: n for t, x in zip(inputs, values, strict=True) for y, n in zip(t, x.shape, strict=True)}
        index = np.ix_(*(np.arange(sizes[y]) for y in labels))
        total = sum(x[tuple(index[labels.index(y)] for y in t)] for t, x in zip(inputs, values, strict=True))
        total = np.broadcast_to(total, [sizes[y] for y in labels])
        left = [y for y in labels if y in output]
        total = np.moveaxis(total, [labels.index(y) for y in left], range(len(left)))
        total = total.reshape((*(sizes[y] for y in left), -1))
        order = [left.index(y) for y in output]
        np.testing.assert_array_equal(got.values, best(total, axis=-1).transpose(order))
        ways = (total == best(total, axis=-1, keepdims=True)).sum(-1).transpose(order)
        np.testing.assert_array_equal(got.counts, ways)


def test_counts_that_are_given():
    a, b = np.array([[0, 1], [1, 0]]), np.array([2, 3])
    got = tg.einsum("ij,j->", (a, np.full((2, 2), 5)), b, semiring="count_max_plus", return_assignment=True)
    assert got.value == (4, 5)
    assert got.value.counts.dtype == np.int64
    assert got.assignment == {"i": 0, "j": 1}
    out = np.empty(2, int), np.empty(2)
    assert tg.einsum("ij->i", a, semiring="count-min-plus", out=out).counts is out[1]
    assert out[1].tolist() == [1, 1]
    with pytest.raises(
        TypeError, match=r"operands\[0\] is a pair, expected an array: max_plus has no counts"
    ):
        tg.einsum("ij->", (a, a), semiring="max_plus")
