"""The commands."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import tropical_gemm as tg

from ..algorithms.errors import AboutNodes, EdgeError, NegativeEdgeError, TooLargeError
from ..algorithms.ranges import extremes
from . import arrays, bench, output
from .graph_file import GraphFile, MalformedFile
from .readers import read_graph

EXIT_CODES = """Exit codes: 0 done; 1 a fault of the program; 2 wrong usage or arguments; 3 a file that
cannot be read, is malformed, or cannot be written; 4 no shortest paths (a negative cycle, or lengths that
do not fit the dtype); 5 no path from --from to --to; 6 too little memory; 130 interrupted. Failures are
told in one line on standard error, with --json too."""

app = typer.Typer(
    help="Tropical (semiring) matrix products and shortest paths.\n\n" + EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_errors = Console(stderr=True, highlight=False, soft_wrap=True)

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, for machines.")]
Threads = Annotated[int | None, typer.Option(help="At most that many threads.", min=1)]


class _Fault(Exception):
    """A failure in the words of the command."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


@contextmanager
def _faults() -> Iterator[None]:
    """Failures in one line, with their exit codes."""
    try:
        yield
    except _Fault as fault:
        _quit(str(fault), fault.code)
    except (MalformedFile, OSError) as error:
        _quit(str(error), 3)
    except (tg.NegativeCycleError, OverflowError) as error:
        _quit(str(error), 4)
    except MemoryError as error:
        _quit(str(error), 6)
    except (ValueError, TypeError) as error:
        _quit(str(error), 2)
    except KeyboardInterrupt:
        _quit("interrupted", 130)


@contextmanager
def _about(path: Path, name: Callable[[int], Any]) -> Iterator[None]:
    """Failures of a graph in the words of its file."""
    try:
        yield
    except AboutNodes as error:
        code = 2 if isinstance(error, NegativeEdgeError) else 3 if isinstance(error, EdgeError) else 4
        text = error.named(name).replace("csgraph", "the graph")
        raise _Fault(f"{path}: {text}", code) from None
    except OverflowError as error:
        raise _Fault(f"{path}: {error}".replace("csgraph", "the graph"), 4) from None
    except TooLargeError as error:
        text = f"{path}: {error.facts}; pass --from for one row, or --method D for a sparse graph"
        raise _Fault(text, 6) from None


def _quit(text: str, code: int) -> None:
    _errors.print(f"tropical-gemm: {text}", markup=False)
    raise typer.Exit(code)


@app.command("shortest-paths")
def shortest_paths(
    graph: Annotated[
        Path,
        typer.Argument(help="DIMACS .gr, MatrixMarket .mtx, .npy, .npz, or an edge list (any other suffix)."),
    ],
    out: Annotated[Path | None, typer.Option("-o", "--output", help="Distances, as .npy.")] = None,
    predecessors: Annotated[Path | None, typer.Option(help="Predecessors, as .npy.")] = None,
    source: Annotated[
        int | None, typer.Option("--from", help="Only from this node, as the file names it.")
    ] = None,
    target: Annotated[
        int | None, typer.Option("--to", help="Print the path from --from to this node.")
    ] = None,
    undirected: Annotated[bool, typer.Option("--undirected", help="Edges run both ways.")] = False,
    unweighted: Annotated[bool, typer.Option("--unweighted", help="Every edge has length 1.")] = False,
    method: Annotated[str, typer.Option(help="auto, FW, BF or D; see tropical_gemm.shortest_path.")] = "auto",
    no_edge: Annotated[
        float | None, typer.Option(help="In matrices, the value of a missing edge besides inf.")
    ] = None,
    negative_cycles: Annotated[str, typer.Option(help="raise or ignore.")] = "raise",
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Lengths of the shortest paths of a graph.

    Row and column i of the results are node i; where the file names its nodes otherwise than 0 to n - 1,
    OUT.nodes.npy holds their names. Unreachable nodes have inf, for integers the dtype's maximum. Whole
    weights give int32 where every path fits, else int64; others float64.

    With --json, "status" tells of --from and --to: "found", "no path", or "negative cycle" where one on the
    way makes walks shorter without end (--negative-cycles ignore); length and path are null then.
    """
    with _faults():
        if target is not None and source is None:
            raise ValueError("--to needs --from")
        if out is None and target is None:
            raise ValueError(
                "nothing to do: pass -o OUT.npy for the distances, or --from and --to for a path"
            )
        if predecessors is not None and out is None:
            raise ValueError("--predecessors needs -o")
        start = time.perf_counter()
        read = read_graph(graph)
        if no_edge is not None and read.matrix is None:
            raise ValueError(f"--no-edge is for dense matrices, and {graph} lists its edges")
        places = _places(out, predecessors)
        output.check(places)
        with _about(graph, read.label):
            result = _solve(
                read, source, target, predecessors is not None,
                dict(
                    directed=not undirected, unweighted=unweighted, method=method, no_edge=_whole(no_edge),
                    negative_cycles=negative_cycles, threads=threads,
                    progress=sys.stderr.isatty() and not as_json,
                ),
            )  # fmt: skip
        results = {**result, "nodes": None if read.labels is None else np.asarray(read.labels, np.int64)}
        output.write_arrays({path: results[name] for name, path in places.items()})
        report: dict[str, Any] = {
            "nodes": read.nodes,
            "edges": read.edge_count,
            "dtype": str(result["distances"].dtype),
            "seconds": round(time.perf_counter() - start, 3),
            "files": {name: str(path) for name, path in places.items() if results[name] is not None},
        }
        if target is not None:
            report.update({"from": source, "to": target})
            report.update({name: result[name] for name in ("status", "length", "path")})
    _say(report, as_json)
    if result["status"] == "no path":
        _quit(f"there is no path from {source} to {target}", 5)
    if result["status"] == "negative cycle":
        _quit(f"there is no shortest path from {source} to {target}: a negative cycle is on the way", 4)


def _whole(value: "float | None") -> "int | float | None":
    return (
        int(value)
        if value is not None and value == value and abs(value) < 2**53 and value % 1 == 0
        else value
    )


def _places(out: "Path | None", predecessors: "Path | None") -> dict[str, Path]:
    if out is None:
        return {}
    places = {"distances": out, "nodes": out.with_name(out.name.removesuffix(".npy") + ".nodes.npy")}
    return places if predecessors is None else {**places, "predecessors": predecessors}


def _solve(
    read: GraphFile, source: "int | None", target: "int | None", tracks: bool, options: dict[str, Any]
) -> dict[str, Any]:
    start = None if source is None else read.node(source)
    end = None if target is None else read.node(target)
    tracks = tracks or end is not None
    found = tg.shortest_path(read.csgraph(), indices=start, return_predecessors=tracks, **options)
    distances, before = found if tracks else (found, None)
    result = {"distances": distances, "predecessors": before, "status": None, "length": None, "path": None}
    if start is None or end is None:
        return result
    if distances[end] == extremes(str(distances.dtype))[0]:
        return {**result, "status": "negative cycle"}
    path = tg.reconstruct_path(start, end, before)
    if not path:
        return {**result, "status": "no path"}
    names = [read.label(node) for node in path]
    return {**result, "status": "found", "length": distances[end].item(), "path": names}


@app.command()
def matmul(
    a: Annotated[Path, typer.Argument(help="A, as .npy.")],
    b: Annotated[Path, typer.Argument(help="B, as .npy.")],
    out: Annotated[Path, typer.Option("-o", "--output", help="The product, as .npy.")],
    semiring: Annotated[str, typer.Option(help="Such as max_plus, min_plus, max_min, or_and.")] = "max_plus",
    argmax: Annotated[Path | None, typer.Option(help="The selected k, as .npy.")] = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Product of two matrices (or batches of them) over a semiring."""
    with _faults():
        output.check({"product": out} if argmax is None else {"product": out, "argmax": argmax})
        x, y = arrays.load(a), arrays.load(b)
        start = time.perf_counter()
        made = tg.matmul(x, y, semiring=semiring, return_argmax=argmax is not None, threads=threads)
        seconds = time.perf_counter() - start
        results = {out: made} if argmax is None else {out: made.values, argmax: made.argmax}
        output.write_arrays({path: np.asarray(result) for path, result in results.items()})
        first = np.asarray(results[out])
        report = {"shape": list(first.shape), "dtype": str(first.dtype), "seconds": round(seconds, 6)}
    _say({**report, "files": [str(path) for path in results]}, as_json)


@app.command()
def info(as_json: AsJson = False) -> None:
    """What this build and machine have: version, instruction set, threads, GPUs, semirings."""
    facts = tg.info()
    if as_json:
        print(json.dumps(facts))
        return
    table = Table(show_header=False, box=None)
    for name in ("version", "isa", "threads"):
        table.add_row(name, str(facts[name]))
    cuda = facts["cuda"]
    table.add_row("GPUs", ", ".join(device["name"] for device in cuda["devices"]) or cuda["problem"])
    for semiring, dtypes in facts["semirings"].items():
        table.add_row(semiring, " ".join(dtypes))
    Console().print(table)


@app.command("bench")
def bench_command(
    nodes: Annotated[int, typer.Option("-n", help="Rows and columns.", min=1)] = 1024,
    semiring: Annotated[str, typer.Option(help="Of the product.")] = "min_plus",
    dtype: Annotated[str, typer.Option(help="float32, float64, int32, ...")] = "float32",
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Times a product, a product with argmax, and all shortest paths on this machine."""
    with _faults():
        rows = bench.measure(nodes, semiring, dtype, threads)
    if as_json:
        print(json.dumps(rows))
        return
    table = Table("what", "seconds", "1e9 steps a second", box=None)
    for row in rows:
        table.add_row(row["what"], f"{row['seconds']:.4f}", f"{row['rate']:.1f}")
    Console().print(table)


def _say(report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(report))
        return
    for name, value in report.items():
        if isinstance(value, dict):
            value = ", ".join(str(path) for path in value.values()) or "none"
        elif isinstance(value, list):
            value = " ".join(str(item) for item in value)
        if value is not None:
            print(f"{name}: {value}")
