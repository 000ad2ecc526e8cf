"""Are the sdist and the wheel in a folder fit for release? Prints what is wrong, and ends with code 1 then.

python scripts/check_wheel.py dist
"""

import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SDIST_LIMIT, WHEEL_LIMIT = 2 << 20, 60 << 20  # bytes
GLIBC_LIMIT = (2, 36)
# What a library of the wheel may offer to others.
EXPORTED = {"_core": {"PyInit__core"}, "libtropical_gemm_cuda": {"tropical_gemm_cuda_backend"}}


def tracked(*folders: str) -> set[str]:
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", *folders],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(listed.stdout.split("\n")) - {""}


def exported(library: Path) -> set[str]:
    listed = subprocess.run(
        ["nm", "--dynamic", "--defined-only", library], capture_output=True, text=True, check=True
    )
    return {line.split()[-1].partition("@")[0] for line in listed.stdout.splitlines()}


def needed(library: Path) -> set[str]:
    listed = subprocess.run(["readelf", "--dynamic", library], capture_output=True, text=True, check=True)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", listed.stdout))


def check_sdist(path: Path) -> list[str]:
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()} - {""}
    stray = names - tracked() - {"PKG-INFO"}
    wanted = {"CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE", "src/matmul.cpp"}
    problems = [f"holds {name}, which the repository does not" for name in sorted(stray)]
    problems += [f"lacks {name}" for name in sorted(wanted - names)]
    if path.stat().st_size > SDIST_LIMIT:
        problems.append(f"has {path.stat().st_size} bytes, more than {SDIST_LIMIT}")
    return problems


def check_wheel(path: Path) -> list[str]:
    problems = []
    package = {name.removeprefix("python/") for name in tracked("python/tropical_gemm")}
    glibc = re.search(r"manylinux_(\d+)_(\d+)_x86_64", path.name)
    if not glibc or tuple(map(int, glibc.groups())) > GLIBC_LIMIT:
        problems.append(f"has no tag up to manylinux_{GLIBC_LIMIT[0]}_{GLIBC_LIMIT[1]}")
    if path.stat().st_size > WHEEL_LIMIT:
        problems.append(f"has {path.stat().st_size} bytes, more than {WHEEL_LIMIT}")
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
        names = {name for name in archive.namelist() if not name.endswith("/")}
        libraries = {name for name in names if ".so" in name}
        own = {name for name in libraries if name.startswith("tropical_gemm/")}
        grafted = {name for name in libraries - own if name.startswith("tropical_gemm_cpp.libs/lib")}
        about = {name for name in names if re.match(r"tropical_gemm_cpp-[\d.]+\.dist-info/", name)}
        problems += [f"holds {name}" for name in sorted(names - package - own - grafted - about)]
        problems += [f"lacks {name}" for name in sorted(package - names)]
        if not any(name.startswith("tropical_gemm/_core.") for name in own):
            problems.append("lacks the extension module")
        for name in sorted(own):
            library = Path(folder, name)
            surplus = exported(library) - EXPORTED.get(Path(name).name.partition(".")[0], set())
            if surplus:
                problems.append(f"{name} exports {len(surplus)} names more, such as {min(surplus)}")
            problems += [f"{name} needs {n}" for n in sorted(needed(library)) if n.startswith("libstdc++")]
    return problems


def main() -> int:
    folder = Path(sys.argv[1])
    kinds = {"*.tar.gz": check_sdist, "*.whl": check_wheel}
    wrong = 0
    for pattern, check in kinds.items():
        paths = sorted(folder.glob(pattern))
        if not paths:
            print(f"{folder}: no {pattern}")
            wrong += 1
        for path in paths:
            problems = check(path)
            wrong += len(problems)
            print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, {'; '.join(problems) or 'right'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
