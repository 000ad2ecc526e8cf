"""Does an installed package work? It needs nothing but the package and NumPy."""

import json
import sys
from pathlib import Path

import numpy as np
import tropical_gemm as tg

ROOT = Path(__file__).resolve().parent.parent
assert ROOT / "python" not in Path(tg.__file__).parents, "this is not the installed package"

rng = np.random.default_rng(0)
a, b = rng.standard_normal((70, 300)), rng.standard_normal((300, 90))
pairs = {
    "max_plus": (np.add, np.max), "min_plus": (np.add, np.min), "max_mul": (np.multiply, np.max),
    "min_mul": (np.multiply, np.min), "max_min": (np.minimum, np.max), "min_max": (np.maximum, np.min),
}  # fmt: skip
for semiring, (mul, add) in pairs.items():
    for dtype in ("float16", "float32", "float64", "int16", "int32", "int64"):
        x, y = ((5 * v).astype(dtype) for v in (a, b))
        want = add(mul(x[:, :, None], y[None]), axis=1)
        got = tg.matmul(x, y, semiring=semiring)
        assert got.dtype == want.dtype, (semiring, dtype)
        np.testing.assert_array_equal(got, want, err_msg=f"{semiring} {dtype}")
reach = tg.matmul(a > 1.5, b > 1.5, semiring="or_and")
np.testing.assert_array_equal(reach, ((a > 1.5) @ (b > 1.5)).astype(bool))

values, argmax = tg.matmul(a, b, return_argmax=True)
np.testing.assert_array_equal(argmax, (a[:, :, None] + b[None]).argmax(axis=1))
grad_a, grad_b = tg.matmul_backward(np.ones_like(values), argmax, a, b)
assert grad_a.sum() == grad_b.sum() == values.size

inf = np.inf
distances = tg.shortest_path(np.array([[0, 4, inf], [4, 0, 3], [inf, 3, 0]]))
assert distances.tolist() == [[0, 4, 7], [4, 0, 3], [7, 3, 0]]
paths, scores = tg.viterbi(np.log(rng.random((2, 9, 4))), np.log(rng.random((4, 4))))
assert paths.shape == (2, 9)

info = tg.info()
print(
    json.dumps({key: info[key] for key in ("version", "isa", "threads")}), "on Python", sys.version.split()[0]
)
print("right")
