"""The handlers of the custom calls, and whether this JAX can have them."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from .. import _core

OLDEST = (0, 6, 2)  # the first whose rules for derivatives, vmap and shard_map are those used here


def _jax() -> Any:
    wanted = ".".join(map(str, OLDEST))
    try:
        jax = import_module("jax")
        import_module("jax.ffi")
    except ModuleNotFoundError as error:
        if error.name not in ("jax", "jax.ffi", "jaxlib"):
            raise
        if error.name != "jax.ffi":
            raise ImportError(
                f"tropical_gemm.jax needs jax {wanted} or newer, which is not installed; see docs/jax.md"
            ) from error
    if tuple(int(part) for part in jax.__version__.split(".")[:3] if part.isdigit()) < OLDEST:
        raise ImportError(f"tropical_gemm.jax needs jax {wanted} or newer, this is jax {jax.__version__}")
    return jax


def _custom_calls() -> tuple[tuple[int, int], list[tuple[str, str, object]]]:
    built: tuple[tuple[int, int], list[tuple[str, str, object]]] | None = _core.jax_custom_calls()
    if built is None:
        raise ImportError(
            "this build of tropical_gemm has no custom calls for JAX: there was no jaxlib when it was built. "
            "Install it again where jax is installed (docs/jax.md): pip install --force-reinstall --no-deps ."
        )
    return built


def _check_interface(built: tuple[int, int], include: str) -> None:
    """XLA takes handlers built for its own version of the interface, and for older ones a year or more."""
    header = (Path(include) / "xla/ffi/api/c_api.h").read_text()
    found = re.findall(r"#define XLA_FFI_API_(?:MAJOR|MINOR) (\d+)", header)
    here = int(found[0]), int(found[1])
    if here < built:
        raise ImportError(
            f"this build of tropical_gemm is for version {built[0]}.{built[1]} of XLA's FFI, the installed "
            f"jaxlib has {here[0]}.{here[1]}; upgrade jax, or install tropical_gemm again beside it: "
            "pip install --force-reinstall --no-deps ."
        )


def register() -> None:
    """Make the custom calls known to XLA; ImportError where that cannot be."""
    jax = _jax()
    interface, handlers = _custom_calls()
    _check_interface(interface, jax.ffi.include_dir())
    for target, platform, handler in handlers:
        jax.ffi.register_ffi_target(target, handler, platform=platform)
