"""Is this package alone in its directory?"""

import os


def check(directory: str = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) -> None:
    """Raise ImportError if the distribution ``tropical-gemm``, which has our import name, is there too."""
    try:
        names = os.listdir(directory)
    except OSError:  # imported from an archive
        return
    # Ours is tropical_gemm_cpp-*.dist-info. A look at the names: importing importlib.metadata takes longer.
    if any(name.startswith("tropical_gemm-") and name.endswith(".dist-info") for name in names):
        raise ImportError(
            "the distributions tropical-gemm and tropical-gemm-cpp are both installed and overwrite each "
            "other's files; mend it with: "
            "pip uninstall tropical-gemm && pip install --force-reinstall tropical-gemm-cpp"
        )
