"""The commands."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import tropical_gemm as tg

from . import arrays, bench, output
from .graph_file import GraphFile, MalformedFile
from .readers import read_graph

EXIT_CODES = """Exit codes: 0 done; 1 a fault of the program; 2 wrong usage or arguments; 3 a file that
cannot be read, is malformed, or cannot be written; 4 no shortest paths (a negative cycle, or lengths that
do not fit the dtype); 5 no path from --from to --to; 6 too little memory; 130 interrupted."""

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


@contextmanager
def _faults() -> Iterator[None]:
    """Failures in one line, with their exit codes."""
    try:
        yield
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
        places = _places(out, predecessors, read)
        result = _solve(
            read, source, target, predecessors is not None,
            dict(
                directed=not undirected, unweighted=unweighted, method=method, no_edge=_whole(no_edge),
                negative_cycles=negative_cycles, threads=threads,
                progress=sys.stderr.isatty() and not as_json,
            ),
        )  # fmt: skip
        found = {places["distances"]: result["distances"]} if "distances" in places else {}
        if predecessors is not None:
            found[places["predecessors"]] = result["predecessors"]
        if "nodes" in places:
            found[places["nodes"]] = np.asarray(read.labels, np.int64)
        output.write_arrays(found)
        report: dict[str, Any] = {
            "nodes": read.nodes,
            "edges": read.edge_count,
            "dtype": str(result["distances"].dtype),
            "seconds": round(time.perf_counter() - start, 3),
            "files": {name: str(path) for name, path in places.items()},
        }
        if target is not None:
            report.update({"from": source, "to": target, "length": result["length"], "path": result["path"]})
    _say(report, as_json)
    if target is not None and result["path"] is None:
        _quit(f"there is no path from {source} to {target}", 5)


def _whole(value: "float | None") -> "int | float | None":
    return (
        int(value)
        if value is not None and value == value and abs(value) < 2**53 and value % 1 == 0
        else value
    )


def _places(out: "Path | None", predecessors: "Path | None", read: GraphFile) -> dict[str, Path]:
    places = {}
    if out is not None:
        places["distances"] = out
        if predecessors is not None:
            places["predecessors"] = predecessors
        if read.labels is not None:
            places["nodes"] = out.with_name(out.name.removesuffix(".npy") + ".nodes.npy")
    for name, path in places.items():
        if path.suffix != ".npy":
            raise ValueError(f"the {name} would go to {path}, expected a name that ends with .npy")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"there is no directory {path.parent} for {path.name}")
    if len({path.resolve() for path in places.values()}) < len(places):
        raise ValueError(f"{', '.join(map(str, places.values()))}: expected a file of its own for each")
    return places


def _solve(
    read: GraphFile, source: "int | None", target: "int | None", tracks: bool, options: dict[str, Any]
) -> dict[str, Any]:
    indices = None if source is None else read.node(source)
    end = None if target is None else read.node(target)
    distances, before = (
        tg.shortest_path(
            read.csgraph(), indices=indices, return_predecessors=tracks or end is not None, **options
        )
        if tracks or end is not None
        else (tg.shortest_path(read.csgraph(), indices=indices, **options), None)
    )
    result = {"distances": distances, "predecessors": before, "length": None, "path": None}
    if indices is not None and end is not None:
        path = tg.reconstruct_path(indices, end, before)
        if path:
            result["length"] = distances[end].item()
            result["path"] = [read.label(node) for node in path]
    return result


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
        for path in (out, argmax):
            if path is not None and path.suffix != ".npy":
                raise ValueError(f"{path} is no name for a result, expected one that ends with .npy")
        if argmax is not None and argmax.resolve() == out.resolve():
            raise ValueError(f"{out} is named for two results, expected a file of its own for each")
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
