import importlib.util
import os

import hypothesis
import pytest
import tropical_gemm as tg
from tropical_gemm import _core

# JAX reads it when it starts; the tests of shard_map need two devices.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

# The same examples in every run; `--hypothesis-profile=search` looks for new ones.
hypothesis.settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=100,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.register_profile(
    "search", deadline=None, max_examples=2000, suppress_health_check=list(hypothesis.HealthCheck)
)
hypothesis.settings.load_profile("repeatable")


# Files about a library that is not installed.
absent = [package for package in ("torch", "jax") if importlib.util.find_spec(package) is None]
collect_ignore_glob = [f"test_*{package}*.py" for package in absent]


def pytest_report_header():
    info = tg.info()
    isas = ", ".join(info["isas"])
    left_out = [f"not installed, so left out: {' '.join(collect_ignore_glob)}"] if absent else []
    return [
        *left_out,
        f"tropical_gemm {tg.__version__}: isa {info['isa']} of {isas}, {info['threads']} threads",
    ]


@pytest.fixture(params=tg.info()["isas"])
def isa(request):
    """Each instruction set of this machine in turn."""
    _core.set_isa(request.param)
    yield request.param
    _core.set_isa("")
