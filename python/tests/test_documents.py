"""What README, docs and the other pages show works as it is written there; see documents.py."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from documents import BLOCKS, PAGES, ROOT, RUN, SHOWN, commands
from tropical_gemm.compat import legacy

PREFIX = ROOT / "build/prefix"  # where scripts/example_cpp.sh installs the C++ package


def of(*languages):
    return [pytest.param(block, id=str(block)) for block in BLOCKS if block.language in languages]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """For each page its folder, the names it knows, how many of its blocks were taken, why one was not."""
    return {page: [tmp_path_factory.mktemp("page"), {"__name__": page.name}, 0, ""] for page in PAGES}


def has(package):
    try:
        __import__(package)
    except ImportError:
        return False
    return True


def why_not(block):
    """Why a block cannot run here, or nothing."""
    if block.not_run:
        return block.not_run
    for package in ("torch", "jax", "networkx", "igraph"):
        if re.search(rf"\b(import|from) .*\b{package}\b|#.*\b{package}\b", block.text) and not has(package):
            return f"{package} is not installed"
    return ""


def on_this_machine(source):
    if not has("torch") or not __import__("torch").cuda.is_available():
        return source.replace('device="cuda"', 'device="cpu"')
    return source


def check(value, expected, names):
    if repr(value) == expected:
        return
    wanted = eval(expected, names)
    if isinstance(wanted, dict):
        assert value == wanted
    else:
        np.testing.assert_array_equal(value, wanted)


def run_python(block, names):
    """Statement by statement; one whose line ends with "# -> VALUE" has that value."""
    source = on_this_machine(block.text)
    lines = source.splitlines()
    for statement in ast.parse(source).body:
        promise = re.search(r"# -> (.*)$", lines[statement.end_lineno - 1])
        ast.increment_lineno(statement, block.line - 1)
        if promise:
            assert isinstance(statement, ast.Expr), f"{block}: '# ->' stands behind no expression"
            code = compile(ast.Expression(statement.value), str(block.page), "eval")
            check(eval(code, names), promise[1], names)
        else:
            exec(compile(ast.Module([statement], []), str(block.page), "exec"), names)


@pytest.mark.parametrize("block", of("python"))
def test_python(block, pages, monkeypatch):
    folder, names, done, left_out = pages[block.page]
    monkeypatch.chdir(folder)
    ours = [b for b in BLOCKS if b.page == block.page and b.language == "python"]
    for b in ours[done : ours.index(block) + 1]:  # more than one where tests are selected
        pages[block.page][2] += 1
        reason = why_not(b)
        if reason:
            pages[block.page][3] = left_out = reason
        elif b.raises:
            with pytest.raises(__builtins__[b.raises]):
                run_python(b, names)
        else:
            try:
                run_python(b, names)
            except NameError as error:
                if not left_out:
                    raise
                reason = f"{left_out}, so {error}"
    if reason:
        pytest.skip(reason)


@pytest.mark.parametrize("block", of("sh"))
def test_shell(block, pages, monkeypatch):
    monkeypatch.chdir(pages[block.page][0])
    for command in commands(block):
        for path in re.findall(r"\b(?:benchmarks|examples|python|scripts)/[\w./-]+\.(?:py|sh)\b", command):
            assert (ROOT / path).exists(), f"{block}: {path} does not exist"
    if block.not_run:
        pytest.skip(block.not_run)
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in commands(block):
        words = shlex.split(command)
        if words[0] == "make":
            assert set(words[1:]) <= set(targets)
        elif words[0] == "tropical-gemm":
            pytest.importorskip("typer")
            words[:1] = [sys.executable, "-c", "from tropical_gemm.cli import main; main()"]
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, f"{block}: {command}\n{done.stdout}{done.stderr}"
        else:
            pytest.fail(f"{block}: '{command}' has neither a way to be run here nor a reason not to")


def program(blocks):
    """One program of a page's blocks."""
    lines = "".join(b.text for b in blocks).splitlines(keepends=True)
    includes = {line for line in lines if line.startswith("#include")}
    body = (line for line in lines if line not in includes)
    standard = ("cstdint", "cstdio", "iostream", "limits", "vector")
    return "".join(
        [*(f"#include <{name}>\n" for name in standard), *includes, "int main() {\n", *body, "return 0;\n}\n"]
    )


def test_cpp(tmp_path):
    """All programs in one CMake project against the installed package, as docs/cpp.md has it."""
    if not list(PREFIX.glob("lib*/**/TropicalGemmConfig.cmake")):
        pytest.skip("the C++ package is not installed in build/prefix: scripts/example_cpp.sh")
    if not shutil.which("cmake") or not shutil.which("ninja"):
        pytest.skip("needs cmake and ninja")
    project = ["cmake_minimum_required(VERSION 3.25)", "project(documents LANGUAGES C CXX)"]
    project += ["add_executable(program cpp.cpp)"]
    project += [b.text for b in BLOCKS if b.language == "cmake"]
    names = []
    for page in PAGES:
        cpp = [b for b in BLOCKS if b.page == page and b.language == "cpp"]
        if not cpp:
            continue
        (tmp_path / f"{page.stem}.cpp").write_text(program(cpp))
        names.append("program" if page.stem == "cpp" else page.stem)
        if names[-1] != "program":
            project += [
                f"add_executable({page.stem} {page.stem}.cpp)",
                f"target_link_libraries({page.stem} PRIVATE TropicalGemm::tropical_gemm)",
            ]
    for i, block in enumerate(b for b in BLOCKS if b.language == "c"):
        (tmp_path / f"{i}.c").write_text(block.text)
        names.append(f"c_{i}")
        project += [
            f"add_executable(c_{i} {i}.c)",
            f"target_link_libraries(c_{i} PRIVATE TropicalGemm::tropical_gemm)",
        ]
    (tmp_path / "CMakeLists.txt").write_text("\n".join(project) + "\n")
    build = tmp_path / "build"
    for command in (
        ["cmake", "-S", tmp_path, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={PREFIX}"],
        ["cmake", "--build", build],
        *([build / name] for name in names),
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert len(names) >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page):
    """Languages are known, marks are of use, links lead to files."""
    ours = [block for block in BLOCKS if block.page == page]
    for block in ours:
        assert block.language in RUN | SHOWN, f"{block}: {block.language}"
        assert not block.raises or block.language == "python", f"{block}: only Python raises"
        assert not block.not_run or block.language in {"python", "sh"}, f"{block}: it is not run at all"
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("module", ["", ".torch", ".jax", ".distributed", ".compat.librosa"])
def test_api(module):
    """The page of the API lists every public name."""
    package = pytest.importorskip("tropical_gemm" + module, exc_type=ImportError)
    listed = set(re.findall(r"\w+", (ROOT / "docs/api.md").read_text()))
    names = set(package.__all__) - (set(legacy.__all__) if not module else set())
    assert names <= listed, names - listed


def test_worked_example():
    """The patch that adds a semiring fits the sources."""
    if not (ROOT / "src").exists() or not shutil.which("git"):
        pytest.skip("needs git and the sources")
    patch = ROOT / "docs/examples/max_drastic.patch"
    done = subprocess.run(
        ["git", "apply", "--check", "-C1", patch], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_plots(tmp_path):
    """The tables that plots are drawn from are there, and so are the plots."""
    pytest.importorskip("matplotlib")
    command = [sys.executable, ROOT / "benchmarks/python/plots.py", "--output", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn
    assert drawn <= {path.name for path in (ROOT / "docs/images").iterdir()}


def test_pages_are_found():
    assert len(PAGES) > 15
    assert len(of("python")) > 25
    assert Path(__file__).is_relative_to(ROOT)
