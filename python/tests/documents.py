"""The code blocks of the pages, and the comments that say what a reader need not see.

In a page, before a block, out of a reader's sight:

    <!-- not run: REASON -->          the next block is not run
    <!-- raises: TypeError -->        the next block of Python raises it
    <!-- hidden python                code of its own, run where it stands; or "hidden cpp"
    ...
    -->
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
# Blocks in these languages are run, those in others are only shown.
RUN = {"python", "sh", "cpp", "c", "cmake"}
SHOWN = {"", "{toctree}", "{include}", "{eval-rst}", "{literalinclude}"}

_PART = re.compile(
    r"^<!-- (?P<mark>not run|raises): (?P<value>.*?) -->$"
    r"|^<!-- hidden (?P<hidden>python|cpp)\n(?P<code>.*?)^-->$"
    r"|^(?P<indent> *)```(?P<language>[^\s`]*)[^\n]*\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass
class Block:
    """One block of a page. The text keeps its place: `line` is that of its first line."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str = ""
    raises: str = ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    found, marks = [], {}
    for part in _PART.finditer(text):
        if part["mark"]:
            marks[part["mark"].replace(" ", "_")] = part["value"]
            continue
        language, code = part["hidden"] or part["language"], part["code"] or part["text"]
        line = text.count("\n", 0, part.start()) + 2
        found.append(Block(page, line, language, code, **marks))
        marks = {}
    if marks:
        raise ValueError(f"{page}: {marks} stands before no block")
    return found


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def commands(block: Block) -> list[str]:
    """The lines of a shell block without comments."""
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in block.text.splitlines())
    return [line for line in lines if line]
