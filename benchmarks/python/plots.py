"""Draws the plots of the pages from the tables of docs/performance.md: run it when a table has changed.

    python benchmarks/python/plots.py [--output docs/images]

Nothing is measured here. A table is found by a heading and the beginning of its first header cell; a missing
one, or a missing row, ends the program.
"""

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
INK, ACCENT, QUIET = "#222222", "#1f6f8b", "#b8b8b8"


class Tables:
    """The tables of a page, by heading."""

    def __init__(self, page: Path) -> None:
        self.sections: dict[str, list[list[list[str]]]] = {}
        section, previous = "", ""
        for line in page.read_text().splitlines():
            if line.startswith("#"):
                section = line.lstrip("# ")
            elif line.startswith("|"):
                tables = self.sections.setdefault(section, [])
                if not previous.startswith("|"):
                    tables.append([])
                tables[-1].append([cell.strip() for cell in line.strip("|").split("|")])
            previous = line

    def rows(self, section: str, first: str) -> list[list[str]]:
        """The rows below the header."""
        for table in self.sections.get(section, []):
            if table[0][0].startswith(first):
                return table[2:]
        raise SystemExit(f"docs/performance.md: no table '{first}' below '{section}'")

    def row(self, section: str, first: str, *start: str) -> list[str]:
        """The row that begins with these cells."""
        for row in self.rows(section, first):
            if row[: len(start)] == list(start):
                return row
        raise SystemExit(f"docs/performance.md: no row {start} in the table '{first}' below '{section}'")


def seconds(cell: str) -> float:
    """The first time in a cell, such as "13.5 ms" or "4.35 s (22)"."""
    found = re.match(r"([\d.,]+) (us|ms|s)\b", cell)
    if not found:
        raise SystemExit(f"docs/performance.md: '{cell}' is no time")
    return float(found[1].replace(",", "")) * UNITS[found[2]]


def speedups(tables: Tables, axes) -> None:
    """How many times as fast as other ways."""
    packages = "Other packages, calls from Python"
    values, argmax = (tables.row(packages, "n", "1024", what, "two") for what in ("values", "argmax"))
    ways = tables.row("GPU", "n", "4096")
    paths, before = (
        tables.row("Shortest paths", "n = 2000", f"float32, {what}")
        for what in ("distances", "and predecessors")
    )
    viterbi = tables.row("Viterbi", "states", "1440", "1 x 1000")
    bars = [
        ("product, n = 1024, two cores / NumPy", values[3], values[4]),
        ("the same with argmax / NumPy", argmax[3], argmax[4]),
        ("product, n = 4096, H200 / broadcast in chunks", ways[1], ways[3]),
        ("the same / Triton, straightforward", ways[1], ways[5]),
        ("shortest paths, n = 2000, two cores / SciPy", paths[1], paths[2]),
        ("and predecessors / SciPy", before[1], before[2]),
        ("Viterbi, 1440 states, two cores / librosa", viterbi[2], viterbi[4]),
        ("the same / a loop in torch", viterbi[2], viterbi[3]),
    ]
    names = [name for name, _, _ in bars][::-1]
    times = [seconds(other) / seconds(ours) for _, ours, other in bars][::-1]
    axes.barh(names, times, color=ACCENT, height=0.6)
    axes.bar_label(axes.containers[0], fmt="%.3g x", padding=3, fontsize=9, color=INK)
    axes.set(xscale="log", xlim=(1, 500), xlabel="times as fast")


def cpu_share(tables: Tables, axes) -> None:
    """Rates of one core beside the loops over registers."""
    found = {}
    for row in tables.rows("One thread", "row"):
        name = re.fullmatch(r"values/(f32|f64|i32)/max_plus/(\d+)x\2x\2", row[0])
        if name:
            found.setdefault(name[1], []).append((int(name[2]), float(row[3])))
    fused = {
        dtype: float(tables.row("One thread", "row", f"limit/fma_for_add/{dtype}")[3])
        for dtype in ("f32", "f64")
    }
    for dtype, color in (("f32", ACCENT), ("f64", "#d1603d"), ("i32", "#6a8d3a")):
        if len(found.get(dtype, [])) < 3:
            raise SystemExit(f"docs/performance.md: too few square products of {dtype} below 'One thread'")
        axes.plot(*zip(*found[dtype], strict=True), marker="o", color=color, label=dtype)
        if dtype in fused:
            axes.axhline(fused[dtype], color=color, linestyle=":", linewidth=1)
    axes.set(xscale="log", ylim=(0, 65), xlabel="n", ylabel="1e9 pairs of ⊗ and ⊕ a second")
    axes.set_xticks([256, 512, 1024, 2048], ["256", "512", "1024", "2048"], minor=False)
    axes.minorticks_off()
    axes.legend(
        frameon=False, title="max_plus, one Zen 4 core\ndotted: limits of f32 and f64", loc="lower left"
    )


def gpu_ways(tables: Tables, axes) -> None:
    """Times on the GPU beside other ways."""
    rows = tables.rows("GPU", "n")
    ways = [(1, "values", ACCENT), (2, "with argmax", "#5aa9c4"), (5, "Triton", "#d1603d"),
            (4, "torch.compile", "#8a8a8a"), (3, "broadcast in chunks", QUIET)]  # fmt: skip
    for column, label, color in ways:
        points = [(int(row[0]), seconds(row[column]) * 1e3) for row in rows if row[column]]
        axes.plot(*zip(*points, strict=True), marker="o", color=color, label=label)
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel="ms")
    axes.set_xticks([int(row[0]) for row in rows], [row[0] for row in rows])
    axes.minorticks_off()
    axes.legend(frameon=False, title="float32 max_plus, one H200")


PLOTS = {
    "speedups": (speedups, (7.5, 3.2)),
    "cpu_rates": (cpu_share, (5.5, 3.6)),
    "gpu_ways": (gpu_ways, (5.5, 3.6)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--page", type=Path, default=ROOT / "docs/performance.md")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/images")
    options = parser.parse_args()
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    tables = Tables(options.page)
    for name, (draw, size) in PLOTS.items():
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        axes.spines[["top", "right"]].set_visible(False)
        draw(tables, axes)
        figure.savefig(options.output / f"{name}.png", dpi=110, metadata={"Software": None})
        print(options.output / f"{name}.png")


if __name__ == "__main__":
    main()
