import re

import oracle
import pytest
import tropical_gemm as tg
from tropical_gemm import _core


def test_facts():
    info = tg.info()
    assert re.fullmatch(r"\d+\.\d+\.\d+", tg.__version__)
    assert info["version"] == tg.__version__
    assert info["isa"] in info["isas"]
    assert info["threads"] >= 1
    assert set(info["dtypes"]) == set(oracle.DTYPES)
    assert {(s, d) for s, dtypes in info["semirings"].items() for d in dtypes} == set(oracle.PAIRS)
    assert tuple(info["semirings"]) == tg.semirings


def test_cuda_is_a_fact_of_the_machine():
    assert tg.cuda_available() is tg.info()["cuda"]["available"]


def test_set_isa(isa):
    assert tg.info()["isa"] == isa


def test_unknown_isa():
    with pytest.raises(ValueError, match="no-such"):
        _core.set_isa("no-such")
    assert tg.info()["isa"] in tg.info()["isas"]


def test_public_names():
    for name in tg.__all__:
        assert hasattr(tg, name)
