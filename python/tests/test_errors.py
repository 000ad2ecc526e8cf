"""Wrong arguments: the kind of exception, the argument it names, what came and what was expected."""

import re

import ml_dtypes
import numpy as np
import pytest
import tropical_gemm as tg
from cases import Producer
from tropical_gemm import _core

FLOAT8, BFLOAT16 = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
A, B = np.ones((3, 4)), np.ones((4, 5))


def unaligned(shape):
    raw = np.zeros(8 * int(np.prod(shape)) + 1, np.uint8)[1:]
    return raw.view(np.float64).reshape(shape)


def odd_stride(shape):
    """A field of packed records: its stride is no multiple of its element size."""
    return np.zeros(shape, np.dtype([("x", np.float64), ("tag", np.int8)]))["x"]


class Masked(np.ndarray):
    pass


OPERANDS = {
    "K differs": (A, np.ones((5, 2)), ValueError, ["a", "(3, 4)", "b", "(5, 2)", "4", "5"]),
    "K differs, vector a": (np.ones(3), B, ValueError, ["a", "(3,)", "(4, 5)"]),
    "K differs, vector b": (A, np.ones(3), ValueError, ["(3, 4)", "b", "(3,)"]),
    "batches": (np.ones((2, 3, 4)), np.ones((3, 4, 5)), ValueError, ["(2, 3, 4)", "(3, 4, 5)", "broadcast"]),
    "a without axes": (np.array(1.0), B, ValueError, ["a", "0 dimensions"]),
    "b without axes": (A, np.array(1.0), ValueError, ["b", "0 dimensions"]),
    "too many axes": (np.ones((1,) * 60), B, ValueError, ["a", "60", "34"]),
    "number": (A, 2.0, TypeError, ["b", "float", "array"]),
    "NumPy scalar": (np.float64(2), B, TypeError, ["a", "float64", "numpy.asarray"]),
    "list": ([[1.0]], B, TypeError, ["a", "list", "numpy.asarray"]),
    "nested list": (A, [[1.0]] * 4, TypeError, ["b", "list", "numpy.asarray"]),
    "None": (A, None, TypeError, ["b", "NoneType"]),
    "str": ("abc", B, TypeError, ["a", "str"]),
    "object": (A.astype(object), B.astype(object), TypeError, ["a", "object", "float32"]),
    "complex": (A.astype(complex), B.astype(complex), TypeError, ["a", "complex128", "float64"]),
    "unsigned": (A, B.astype(np.uint8), TypeError, ["b", "uint8", "int32"]),
    "int8": (A.astype(np.int8), B.astype(np.int8), TypeError, ["a", "int8", "int16"]),
    "uint16 is not bfloat16": (A.astype(np.uint16), B.astype(np.uint16), TypeError, ["a", "uint16"]),
    "float8": (A.astype(FLOAT8), B.astype(FLOAT8), TypeError, ["a", "float8"]),
    "long double": (A.astype("g"), B.astype("g"), TypeError, ["a", np.dtype("g").name, "float64"]),
    "strings": (A.astype("U3"), B.astype("U3"), TypeError, ["a", "<U"]),
    "dates": (A.astype("M8[s]"), B.astype("M8[s]"), TypeError, ["a", "datetime64"]),
    "records": (A, np.zeros((4, 5), [("x", "f8")]), TypeError, ["b", "x"]),
    "bool": (A > 0, B > 0, TypeError, ["a", "bool", "max_plus", "or_and"]),
    "mixed": (A, B.astype(np.float32), TypeError, ["b", "float32", "float64"]),
    "mixed halves": (A.astype("e"), B.astype(BFLOAT16), TypeError, ["b", "bfloat16", "float16"]),
    "mixed integers": (A.astype(np.int32), B.astype(np.int64), TypeError, ["b", "int64", "int32"]),
    "byte-swapped": (A, B.astype(">f8"), ValueError, ["b", "byte order", "newbyteorder"]),
    "unaligned": (unaligned((3, 4)), B, ValueError, ["a", "aligned"]),
    "odd stride": (A, odd_stride((4, 5)), ValueError, ["b", "stride of 45 bytes", "8"]),
    "masked array": (np.ma.masked_array(A), B, TypeError, ["a", "MaskedArray", "numpy.asarray"]),
    "matrix": (A, B.view(np.matrix), TypeError, ["b", "matrix"]),
    "subclass": (A.view(Masked), B, TypeError, ["a", "Masked"]),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERANDS)
def test_operands(name):
    a, b, error, says = OPERANDS[name]
    with pytest.raises(error) as caught:
        tg.matmul(a, b)
    assert type(caught.value) is error
    for part in says:
        assert part in str(caught.value)


OPTIONS = {
    "unknown semiring": ({"semiring": "plus_times"}, ValueError, ["plus_times", "max_plus", "or_and"]),
    "empty semiring": ({"semiring": ""}, ValueError, ["semiring", "max_plus"]),
    "semiring of a wrong type": ({"semiring": 3}, TypeError, ["semiring", "int", "str"]),
    "no semiring": ({"semiring": None}, TypeError, ["semiring", "NoneType", "str"]),
    "semiring of bool": ({"semiring": "or_and"}, TypeError, ["float64", "or_and", "bool"]),
    "threads 0": ({"threads": 0}, ValueError, ["threads", "0"]),
    "negative threads": ({"threads": -1}, ValueError, ["threads", "-1"]),
    "threads of a wrong type": ({"threads": 1.5}, TypeError, ["threads", "float"]),
    "threads True": ({"threads": True}, TypeError, ["threads", "bool"]),
    "many threads": ({"threads": 2**40}, ValueError, ["threads"]),
    "stream": ({"stream": 1}, ValueError, ["stream", "1", "None"]),
    "return_argmax of a wrong type": ({"return_argmax": 1}, TypeError, ["return_argmax", "int", "bool"]),
    "accumulate of a wrong type": ({"accumulate": "yes"}, TypeError, ["accumulate", "str", "bool"]),
    "offset of a wrong type": ({"argmax_offset": 1.0}, TypeError, ["argmax_offset", "float"]),
    "unknown keyword": ({"transpose": True}, TypeError, ["transpose"]),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name):
    options, error, says = OPTIONS[name]
    with pytest.raises(error) as caught:
        tg.matmul(A, B, **options)
    for part in says:
        assert part in str(caught.value)


def test_semiring_is_keyword_only():
    with pytest.raises(TypeError, match="positional"):
        tg.matmul(A, B, "min_plus")


def test_index_beyond_int32():
    a, b = (np.broadcast_to(np.float32(1), s) for s in ((1, 2**31), (2**31, 1)))
    with pytest.raises(ValueError, match=r"2147483648.*2147483647") as caught:
        tg.matmul(a, b, return_argmax=True)
    assert "a" in str(caught.value)
    out, arg = np.full((1, 1), 7, np.float32), np.full((1, 1), 7, np.int32)
    with pytest.raises(ValueError, match="argmax_offset"):
        tg.matmul(a[:, :10], b[:10], out=(out, arg), argmax_offset=2**31 - 5)
    assert (out[0, 0], arg[0, 0]) == (7, 7)


def test_sizes_that_overflow():
    a, b = (np.broadcast_to(np.float32(1), s) for s in ((2**33, 1), (1, 2**33)))
    with pytest.raises(ValueError, match="memory"):
        tg.matmul(a, b)
    # Countable, but more than there is.
    a, b = (np.broadcast_to(np.float32(1), s) for s in ((2**28, 1), (1, 2**28)))
    with pytest.raises(MemoryError):
        tg.matmul(a, b)


def test_two_libraries():
    torch = pytest.importorskip("torch")
    for a, b in [(A, torch.ones(4, 5)), (torch.ones(3, 4), B)]:
        with pytest.raises(TypeError) as caught:
            tg.matmul(a, b)
        for part in ("a", "b", "numpy.ndarray", "torch.Tensor"):
            assert part in str(caught.value)
    with pytest.raises(TypeError, match=r"out.*torch\.Tensor"):
        tg.matmul(A, B, out=torch.zeros(3, 5, dtype=torch.float64))


GRADIENTS = {
    "grad_c shape": ({"grad_c": np.ones((3, 4))}, ValueError, ["grad_c", "(3, 4)", "(3, 5)"]),
    "grad_c rank": ({"grad_c": np.ones(15)}, ValueError, ["grad_c", "(15,)", "(3, 5)"]),
    "grad_c dtype": ({"grad_c": np.ones((3, 5), np.float32)}, TypeError, ["grad_c", "float32", "float64"]),
    "argmax shape": ({"argmax": np.zeros((3, 4), np.int32)}, ValueError, ["argmax", "(3, 4)", "(3, 5)"]),
    "argmax smaller": ({"argmax": np.zeros((2, 5), np.int32)}, ValueError, ["argmax", "(2, 5)", "(3, 5)"]),
    "argmax dtype": (
        {"argmax": np.zeros((3, 5), np.int16)},
        TypeError,
        ["argmax", "int16", "int32", "int64"],
    ),
    "argmax float": ({"argmax": np.zeros((3, 5))}, TypeError, ["argmax", "float64", "int32"]),
    "argmax list": ({"argmax": [[0] * 5] * 3}, TypeError, ["argmax", "list", "numpy.asarray"]),
    "K differs": ({"b": np.ones((3, 5))}, ValueError, ["(3, 4)", "(3, 5)"]),
    "integers": (
        {"a": A.astype(np.int32), "b": B.astype(np.int32), "grad_c": np.ones((3, 5), np.int32)},
        TypeError,
        ["a", "int32", "gradient"],
    ),
    "bool": (
        {"a": A > 0, "b": B > 0, "grad_c": np.ones((3, 5), bool), "semiring": "or_and"},
        TypeError,
        ["a", "bool", "gradient"],
    ),
    "needs of a wrong type": ({"needs": True}, TypeError, ["needs", "True"]),
    "three needs": ({"needs": (True, True, True)}, TypeError, ["needs"]),
    "needs of numbers": ({"needs": (1, 0)}, TypeError, ["needs[0]", "int", "bool"]),
    "threads": ({"threads": 0}, ValueError, ["threads", "0"]),
    "semiring": ({"semiring": "nope"}, ValueError, ["nope", "max_plus"]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    change, error, says = GRADIENTS[name]
    call = {"grad_c": np.ones((3, 5)), "argmax": np.zeros((3, 5), np.int32), "a": A, "b": B} | change
    with pytest.raises(error) as caught:
        tg.matmul_backward(**call)
    for part in says:
        assert part in str(caught.value)


def test_out_as_a_list():
    with pytest.raises(TypeError, match=r"out is a list.*\(values, argmax\)"):
        tg.matmul(A, B, out=[np.empty((3, 5)), np.empty((3, 5), np.int32)])


def test_semiring_that_is_no_text():
    with pytest.raises(ValueError, match="surrogates"):
        tg.matmul(A, B, semiring="\ud800")


def test_a_number_of_threads_beyond_every_integer_type():
    with pytest.raises(ValueError, match="threads is " + str(10**30)):
        tg.matmul(A, B, threads=10**30)


def test_more_axes_than_numpy_has():
    torch = pytest.importorskip("torch")
    x, k = Producer(torch.ones((1,) * 70)), Producer(torch.zeros((1,) * 70, dtype=torch.int32))
    with pytest.raises(ValueError, match="a has 70 dimensions, at most 34"):
        tg.matmul(x, x)
    with pytest.raises(ValueError, match="a has 70 dimensions, at most 34"):
        tg.matmul_backward(x, k, x, x)


def test_dtypes_are_looked_at_before_memory_is_taken():
    a = np.broadcast_to(np.ones((1, 1), np.float32), (1 << 24, 1))
    b = np.broadcast_to(np.ones((1, 1)), (1, 1 << 24))
    with pytest.raises(TypeError, match="b has dtype float64, expected float32 like a"):
        tg.matmul(a, b)


def test_options_of_sparse_graphs():
    """Also where SciPy's Dijkstra computes."""
    graph = pytest.importorskip("scipy.sparse").csr_array(np.array([[0, 1.0], [1, 0]]))
    for method in ("auto", "D", "FW"):
        for threads in ("x", -1, 2.5):
            with pytest.raises((TypeError, ValueError), match="threads"):
                tg.shortest_path(graph, method=method, threads=threads)
        with pytest.raises(ValueError, match="stream is 5"):
            tg.shortest_path(graph, method=method, stream=5)
        with pytest.raises(TypeError, match="no_edge is of type complex64"):
            tg.shortest_path(graph, method=method, no_edge=np.complex64(1))


def test_results_of_too_many_axes():
    """The core itself refuses what the package never asks of it."""
    with pytest.raises(ValueError, match="65"):
        _core.permute(np.ones((1,) * 60), (0,) * 65, None, None)


def test_objects_that_tell_no_shape():
    """Products read them by DLPack; what has to know shapes before says so."""
    x, k = Producer(np.zeros((2, 2))), Producer(np.zeros((2, 2), np.int32))
    for name, call in {
        "log_emission": lambda: tg.viterbi(x, x),
        "log_transition": lambda: tg.viterbi(np.zeros((3, 2)), x),
        "log_initial": lambda: tg.viterbi(A, np.zeros((4, 4)), x),
        "log_probs": lambda: tg.forced_align(x, k),
        "targets": lambda: tg.forced_align(A, k),
        "operands[0]": lambda: tg.einsum("ij->ji", x, semiring="max_plus"),
        "d": lambda: tg.closure(x, semiring="min_plus"),
        "csgraph": lambda: tg.shortest_path(x),
        "predecessors": lambda: tg.reconstruct_path(0, 1, k),
    }.items():
        with pytest.raises(TypeError, match=rf"^{re.escape(name)} is of type Producer, which tells no shape"):
            call()
