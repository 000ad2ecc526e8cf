"""The table of the front ends: NumPy, DLPack, einsum, the command, the C interface; torch's and JAX's."""

import importlib.util
import json
import tempfile
from pathlib import Path

import c_library
import numpy as np
import oracle
import pytest
import tropical_gemm as tg
from cases import Producer
from front import LEGACY_PREFIXES, Front

needs_c_library = pytest.mark.skipif(c_library.library is None, reason="the C++ library was not built here")


class Dlpack(Front):
    """Objects that speak DLPack 1.0, and nothing else."""

    dtypes = tuple(d for d in oracle.DTYPES if d != "bfloat16")  # which NumPy does not export
    wrapper = Producer

    def put(self, x):
        return self.wrapper(x)

    def get(self, x):
        return np.asarray(x.x if isinstance(x, Producer) else x)


class Unversioned(Producer):
    """As before DLPack 1.0, which had no word for arrays that are read-only."""

    def __dlpack__(self, stream=None):
        return self.x.__dlpack__()


class OldDlpack(Dlpack):
    wrapper = Unversioned
    knows_read_only = False

    def put(self, x):
        return self.wrapper(x if x.flags.writeable else np.array(x))


class Standard(Producer):
    """An array of a library that follows the array API standard."""

    def __array_namespace__(self):
        return Library


class Library:
    __name__ = "library"

    @staticmethod
    def from_dlpack(x):
        return Standard(np.from_dlpack(x))


class ArrayApi(Dlpack):
    wrapper = Standard

    def get(self, x):
        assert isinstance(x, Standard)
        return x.x


class Einsum(Front):
    dtypes = (*oracle.FLOATS, "bool")  # integers that do not fit are refused there, where a product saturates
    values_only = True
    offsets = writes = refuses = differentiates = False

    def matmul(self, a, b, *, semiring, threads):
        # All sizes of a label are equal there, those of an ellipsis too.
        lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = (x if x.ndim == 1 else np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (a, b))
        left, right = "...ij"[-1 if a.ndim == 1 else 0 :], "...j" if b.ndim == 1 else "...jk"
        output = "..." + "i" * (a.ndim > 1) + "k" * (b.ndim > 1)
        return tg.einsum(f"{left},{right}->{output}", a, b, semiring=semiring)


class Refused(ValueError, TypeError):
    """The command does not tell the one from the other."""


class Command(Front):
    """``tropical-gemm matmul`` on files."""

    dtypes = tuple(d for d in oracle.DTYPES if d != "bfloat16")  # no type of numpy.save's
    offsets = writes = differentiates = False
    share = 0.5

    def matmul(self, a, b, *, semiring, threads=None, return_argmax=False):
        from tropical_gemm.cli import app
        from typer.testing import CliRunner

        with tempfile.TemporaryDirectory() as folder:
            paths = {name: Path(folder, name + ".npy") for name in ("a", "b", "c", "argmax")}
            np.save(paths["a"], a)
            np.save(paths["b"], b)
            call = ["matmul", paths["a"], paths["b"], "-o", paths["c"], "--semiring", semiring, "--json"]
            call += ["--argmax", paths["argmax"]] if return_argmax else []
            call += [] if threads is None else ["--threads", threads]
            done = CliRunner().invoke(app.app, list(map(str, call)))
            if done.exit_code == 2:
                raise Refused(done.stderr)
            assert done.exit_code == 0, done.output
            values = np.load(paths["c"])
            assert json.loads(done.stdout)["shape"] == list(values.shape)
            return (values, np.load(paths["argmax"])) if return_argmax else values


class Legacy(Front):
    """The functions of the Rust package, whose results are flat."""

    dtypes = ("float32", "float64")
    vectors = batches = False
    offsets = writes = refuses = differentiates = False
    pairs = tuple((s, d) for s in LEGACY_PREFIXES for d in ("float32", "float64"))

    def matmul(self, a, b, *, semiring, threads, return_argmax=False):
        shape = a.shape[0], b.shape[1]
        prefix, suffix = LEGACY_PREFIXES[semiring], "" if a.dtype == np.float32 else "_f64"
        if return_argmax:
            made = getattr(tg, f"{prefix}_matmul_with_argmax{suffix}")(a, b)
            return tuple(x.reshape(shape) for x in made)
        flat = getattr(tg, f"{prefix}_matmul{suffix}")(a, b)
        oracle.assert_same(getattr(tg, f"{prefix}_matmul_2d{suffix}")(a, b).ravel(), flat)
        return flat.reshape(shape)


class C(Front):
    """The C interface, through ctypes."""

    marks = (needs_c_library,)
    knows_read_only = False
    matmul = staticmethod(c_library.matmul)
    backward = staticmethod(c_library.backward)


FRONTS = {
    "numpy": Front(),
    "dlpack": Dlpack(),
    "dlpack without versions": OldDlpack(),
    "array API": ArrayApi(),
    "einsum": Einsum(),
    "legacy": Legacy(),
    "C": C(),
}
if importlib.util.find_spec("typer"):
    FRONTS["command"] = Command()
if importlib.util.find_spec("torch"):
    import torch_fronts

    FRONTS |= torch_fronts.FRONTS
if importlib.util.find_spec("jax"):
    import jax_fronts

    FRONTS |= jax_fronts.FRONTS
