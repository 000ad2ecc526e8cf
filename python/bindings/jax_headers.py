"""Print the directory of XLA's FFI headers, that of jax.ffi.include_dir(); nothing where there is no jaxlib.

Where pip isolates the build, jaxlib cannot be imported, but it lies beside the interpreter.
"""

import importlib.util
import pathlib
import sysconfig

spec = importlib.util.find_spec("jaxlib")
places = [*(spec.submodule_search_locations or [] if spec else []), sysconfig.get_path("platlib") + "/jaxlib"]
for include in (pathlib.Path(place) / "include" for place in places):
    if (include / "xla/ffi/api/ffi.h").exists():
        print(include)
        break
