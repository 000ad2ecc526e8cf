"""The command ``tropical-gemm``. It needs typer and rich: ``pip install 'tropical-gemm-cpp[cli]'``."""

import sys


def main() -> None:
    """Entry point of the command."""
    try:
        from .app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        print(
            f"tropical-gemm: the command needs {error.name}, which is not installed; "
            "install it with: pip install 'tropical-gemm-cpp[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    app()
