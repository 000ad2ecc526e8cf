"""What a front end is for the tests: a way to give arrays, to multiply, and to have NumPy's arrays back."""

from contextlib import nullcontext

import numpy as np
import oracle
import tropical_gemm as tg

LEGACY_PREFIXES = {"max_plus": "maxplus", "min_plus": "minplus", "max_mul": "maxmul"}


class Front:
    """NumPy arrays, read and written where they lie. The others say what differs."""

    dtypes = tuple(oracle.DTYPES)
    vectors = batches = True
    values_only = False  # no argmax
    offsets = writes = refuses = differentiates = True
    shares_memory = True  # an array is put where it lies, so that what overlaps still does
    knows_read_only = True
    own_argmax = True  # the gradient is of any indices, not of those of the product alone
    share = 1.0  # of the examples, for fronts that take long
    marks = ()

    @property
    def pairs(self):
        """The semirings and dtypes that it has."""
        return [(s, d) for s, d in oracle.PAIRS if d in self.dtypes]

    @property
    def shapes(self):
        return {"vectors": self.vectors, "batches": self.batches}

    def session(self):
        """The context that calls are made in."""
        return nullcontext()

    def put(self, x):
        return x

    def get(self, x):
        return np.asarray(x)

    def matmul(self, a, b, **options):
        return tg.matmul(a, b, **options)

    def backward(self, grad_c, argmax, a, b, **options):
        return tg.matmul_backward(grad_c, argmax, a, b, **options)
