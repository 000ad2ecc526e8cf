"""How a stream is named. No GPU is needed."""

import numpy as np
import pytest
from tropical_gemm import _streams


class Newer:
    def __cuda_stream__(self):
        return 1, 0x1230


class OfTorch:
    device_index = 1
    cuda_stream = 0x1240


class OfCuPy:
    device_id = -1
    ptr = 0


@pytest.mark.parametrize(
    ("stream", "address"),
    [
        (1, 1),
        (2, 2),
        (0x1230, 0x1230),
        (np.int64(2), 2),
        (_streams.Address(0x1230), 0x1230),
        (OfTorch(), 0x1240),
        (OfCuPy(), 1),
    ],
)
def test_addresses(stream, address):
    assert _streams.address(stream, 1) == address


REFUSED = {
    "0": (0, ValueError, ["stream is 0", "ambiguous", "1", "2"]),
    "negative": (-1, ValueError, ["stream is -1"]),
    "too large": (2**63, ValueError, ["stream is 9223372036854775808"]),
    "bool": (True, TypeError, ["bool", "__cuda_stream__"]),
    "str": ("default", TypeError, ["str", "__cuda_stream__"]),
    "float": (1.0, TypeError, ["float"]),
    "a version that is not known": (Newer(), ValueError, ["version 1"]),
    "another device": (OfTorch(), ValueError, ["cuda:1", "cuda:0"]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    stream, error, says = REFUSED[name]
    with pytest.raises(error) as caught:
        _streams.address(stream, 0)
    for part in says:
        assert part in str(caught.value)
