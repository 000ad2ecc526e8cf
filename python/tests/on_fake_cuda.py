"""Arrays that say they are on a GPU, and the fake CUDA library that computes on them. No GPU is needed.

Run as a program, in a process of its own: ``TROPICAL_GEMM_CUDA_LIBRARY`` names the library beforehand.
"""

import ctypes
import sys

import numpy as np
import oracle
import pytest
import tropical_gemm as tg

CPU, CUDA, PINNED, METAL, MANAGED = 1, 2, 3, 8, 13
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Log(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            *("calls", "device", "stream", "workspace", "live"),
            *("released_on", "first", "second", "retired"),
        )
    ]  # fmt: skip


def moved(capsule, kind, index):
    """The capsule of an array, saying that it is somewhere else: data, then the device."""
    device = (ctypes.c_int32 * 2).from_address(_pointer(capsule, b"dltensor") + 8)
    device[0], device[1] = kind, index
    return capsule


class Namespace:
    __name__ = "fakes"

    @staticmethod
    def from_dlpack(x):
        kind, index = x.__dlpack_device__()
        if kind == CPU:
            return OnDevice(np.from_dlpack(x), 0, PINNED)
        return OnDevice(np.from_dlpack(Capsule(x.__dlpack__(stream=0x5550))), index)


class Capsule:
    """For numpy.from_dlpack: a capsule from a GPU, read as in host memory."""

    def __init__(self, capsule):
        self.capsule = moved(capsule, CPU, 0)

    def __dlpack_device__(self):
        return CPU, 0

    def __dlpack__(self, **options):
        return self.capsule


class OnDevice:
    def __init__(self, x, index=0, kind=CUDA):
        self.x, self.index, self.kind, self.streams = x, index, kind, []

    def __array_namespace__(self):
        return Namespace

    def __dlpack_device__(self):
        return self.kind, self.index

    def __dlpack__(self, *, stream=None):  # as before DLPack 1.0
        self.streams.append(stream)
        return moved(self.x.__dlpack__(), self.kind, self.index)


class Shaped(OnDevice):
    """With what the array API standard asks for."""

    @property
    def shape(self):
        return self.x.shape

    @property
    def ndim(self):
        return self.x.ndim

    @property
    def dtype(self):
        return self.x.dtype


def refused(error, says, *args, **options):
    calls = log.calls
    with pytest.raises(error, match=says):
        tg.matmul(*args, **options)
    assert log.calls == calls, "the backend was called"


def main(library):
    global log
    log = ctypes.CDLL(library).tropical_gemm_fake_log
    log.restype = ctypes.POINTER(Log)
    log = log().contents

    facts = tg.info()["cuda"]
    assert facts["built"]
    assert facts["available"] is tg.cuda_available() is True
    assert facts["architectures"] == ["fake"]
    assert [d["supported"] for d in facts["devices"]] == [True, False]
    assert facts["devices"][1]["compute_capability"] == (9, 1)

    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 5))
    x, y = OnDevice(a, 1), OnDevice(b, 1)
    c, argmax = oracle.product("min_plus", a, b)

    # On the legacy default stream unless another is named; the producer is told, the consumer waits for it.
    for stream, address in ((None, 1), (2, 2), (0x770, 0x770)):
        got = tg.matmul(x, y, semiring="min_plus", return_argmax=True, stream=stream)
        oracle.assert_same(got.values.x, c)
        oracle.assert_same(got.argmax.x, argmax, "argmax")
        assert got.values.index == 1
        assert (log.device, log.stream) == (1, address)
        assert (x.streams[-1], y.streams[-1]) == (address, address)
        assert (log.first, log.second) == (address, 0x5550)
        assert log.live == 2, "the results, and no workspace"
        retired = log.retired
        del got
        assert log.live == 0
        assert log.retired == retired + 2, "the streams may be gone"
    scalar = tg.matmul(OnDevice(a[0, 0]), OnDevice(b[:, 0]))
    assert scalar.x.shape == ()

    out = OnDevice(np.full((2, 3, 5), -100.0), 1), OnDevice(np.full((2, 3, 5), -1, np.int32), 1)
    got = tg.matmul(x, y, out=out, accumulate=True)
    assert got.values is out[0]
    values, indices = oracle.product("max_plus", a, b)
    oracle.assert_same(out[0].x, values)
    oracle.assert_same(out[1].x, indices)

    grads = tg.matmul_backward(OnDevice(c, 1), OnDevice(argmax, 1), x, y, semiring="min_plus", stream=0x880)
    assert log.stream == 0x880
    expected = oracle.gradients("min_plus", c, argmax, a, b)
    np.testing.assert_allclose(grads.grad_a.x, expected[0])
    np.testing.assert_allclose(grads.grad_b.x, expected[1])
    only = tg.matmul_backward(
        OnDevice(c, 1), OnDevice(argmax, 1), x, y, semiring="min_plus", needs=(False, True)
    )
    assert only.grad_a is None

    # Paths: read, closed and made on the device, on the stream of the call; scratch memory is given back.
    inf = np.inf
    live = log.live
    graph = Shaped(np.array([[inf, 1, 5], [inf, inf, 1], [2, inf, inf]]), 1)
    for options in ({"method": "FW"}, {"method": "BF"}, {"method": "BF", "no_edge": -1}):
        d, p = tg.shortest_path(graph, return_predecessors=True, stream=0x990, **options)
        assert d.x.tolist() == [[0, 1, 2], [3, 0, 1], [2, 3, 0]]
        assert p.x.tolist() == [[-9999, 0, 1], [2, -9999, 1], [2, 0, -9999]]
        assert (d.index, log.device, log.stream) == (1, 1, 0x990)
        del d, p
        assert log.live == live
    got = tg.closure(Shaped(np.array([[False, True], [False, False]]), 1), semiring="or_and")
    assert got.x.tolist() == [[True, True], [False, True]]
    del got
    with pytest.raises(ValueError, match="GPU"):
        tg.shortest_path(graph, "D")
    with pytest.raises(TypeError, match="no shape"):
        tg.shortest_path(x)

    # Managed memory is the device's, pinned memory the host's.
    assert tg.matmul(OnDevice(a, 0, MANAGED), OnDevice(b)).index == 0
    calls, pinned = log.calls, OnDevice(b, 0, PINNED)
    oracle.assert_same(tg.matmul(OnDevice(a, 0, PINNED), pinned).x, values)
    assert log.calls == calls

    refused(ValueError, "a is on cuda:1 and b is on cuda:0", x, OnDevice(b))
    refused(ValueError, "a is on cuda:1 and b is on the CPU", x, pinned)
    refused(ValueError, "a is on cuda:1 and out is on cuda:0", x, y, out=OnDevice(values.copy()))
    refused(ValueError, "stream is 0, which is ambiguous", x, y, stream=0)
    refused(ValueError, "stream is 1, expected None", pinned, pinned, stream=1)
    refused(TypeError, "stream is of type str", x, y, stream="default")
    refused(ValueError, "a has shape .* and b has shape", x, OnDevice(b[1:], 1))
    refused(TypeError, "b has dtype float32, expected float64", x, OnDevice(b.astype(np.float32), 1))
    square = OnDevice(np.zeros((4, 4)), 1)
    refused(ValueError, "out overlaps a", square, square, out=square)
    refused(RuntimeError, "DLPack type 8", OnDevice(a, 0, METAL), OnDevice(b, 0, METAL))
    with pytest.raises(RuntimeError, match="the fake refuses K = 777"):
        tg.matmul(OnDevice(np.ones((1, 777))), OnDevice(np.ones((777, 1))))

    refused(ValueError, "a is on cuda:-1", OnDevice(a, -1), OnDevice(b, 1))

    plain(a, b, c, argmax)
    legacy(np.float32(a[0]), np.float32(b))
    del scalar, out, grads, only
    assert log.live == 0, log.live


def plain(a, b, c, argmax):
    """A producer that knows no namespace: results stand beside its arrays, and speak DLPack."""

    class Plain:
        def __init__(self, x):
            self.x = OnDevice(x, 1)
            self.__dlpack__, self.__dlpack_device__ = self.x.__dlpack__, self.x.__dlpack_device__

        __dlpack__ = __dlpack_device__ = None

    x, y = Plain(a), Plain(b)
    got = tg.matmul(x, y, semiring="min_plus", return_argmax=True)
    assert (got.values.shape, got.values.dtype, got.argmax.dtype) == (c.shape, "float64", "int32")
    assert not got.values.streams_last
    again = tg.matmul(got.values, Plain(np.eye(5)), semiring="max_mul")
    oracle.assert_same(
        np.from_dlpack(Capsule(again.__dlpack__())), oracle.product("max_mul", c, np.eye(5))[0]
    )
    grads = tg.matmul_backward(got.values, got.argmax, x, y, semiring="min_plus")
    expected = oracle.gradients("min_plus", c, argmax, a, b)
    np.testing.assert_allclose(np.from_dlpack(Capsule(grads.grad_b.__dlpack__())), expected[1])
    refused(TypeError, "arrays of two libraries", got.values, OnDevice(np.eye(5), 1))
    with pytest.raises(TypeError, match="stream is of type str, expected None or the int"):
        got.values.__dlpack__(stream="x")


def legacy(a, b):
    values, argmax = oracle.product("max_mul", a, b)
    oracle.assert_same(tg.maxmul_matmul_gpu(a, np.asfortranarray(b)), values.ravel())
    got = tg.maxmul_matmul_gpu_with_argmax(a, b)
    oracle.assert_same(got[0], values.ravel())
    oracle.assert_same(got[1], argmax.ravel(), "argmax")
    for x, y in ((OnDevice(a), OnDevice(b)), (OnDevice(a).__dlpack__(), OnDevice(b).__dlpack__())):
        capsules = tg.maxmul_matmul_dlpack(x, y)
        for capsule, expected in zip(capsules, (values, argmax), strict=True):
            oracle.assert_same(np.from_dlpack(Capsule(capsule)), expected)
    stacked = tg.maxmul_matmul_batched_dlpack(OnDevice(a[None]), OnDevice(b[None]))
    oracle.assert_same(np.from_dlpack(Capsule(stacked[0])), values[None])


if __name__ == "__main__":
    main(sys.argv[1])
    print("all right")
