"""``shortest-paths`` on several processes: the files and exit codes of ``tropical-gemm``."""

import datetime
import gc
import io
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import torch.distributed as dist
import typer
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

import tropical_gemm as tg

from ..algorithms import ranges
from ..algorithms.sparse import Edges
from ..cli import output
from ..cli.app import EXIT_CODES, _about, _faults, _places, _say, _whole
from ..cli.graph_file import GraphFile, MalformedFile
from ..cli.readers import read_graph
from ._checkpoint import forget
from ._cyclic import BlockCyclic
from ._layout import SLAB, Layout, move, nowhere
from ._paths import shortest_path

app = typer.Typer(
    help="Shortest paths on several processes; start them with torchrun.\n\n" + EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _commands() -> None:
    pass


@app.command("shortest-paths")
def shortest_paths(
    graph: Annotated[
        Path, typer.Argument(help="As for tropical-gemm shortest-paths; the first process alone reads it.")
    ],
    out: Annotated[Path, typer.Option("-o", "--output", help="Distances, as .npy.")],
    predecessors: Annotated[Path | None, typer.Option(help="Predecessors, as .npy.")] = None,
    undirected: Annotated[bool, typer.Option("--undirected", help="Edges run both ways.")] = False,
    unweighted: Annotated[bool, typer.Option("--unweighted", help="Every edge has length 1.")] = False,
    no_edge: Annotated[
        float | None, typer.Option(help="In matrices, the value of a missing edge besides inf.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto: GPUs where there are any.")] = "auto",
    block: Annotated[int | None, typer.Option(help="Nodes of a pivot.", min=1)] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="A directory for what is done, from which a killed run goes on.")
    ] = None,
    checkpoint_every: Annotated[int, typer.Option(help="Pivots between two checkpoints.", min=1)] = 8,
    timeout: Annotated[float, typer.Option(help="Seconds after which a silent process is given up.")] = 600,
    threads: Annotated[int | None, typer.Option(help="Of each process, at most.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Lengths of the shortest paths between all nodes of a graph.

    Files, types and node names are those of tropical-gemm shortest-paths; a name without a suffix gets .npy.
    """
    start = time.perf_counter()
    mesh = _started(device, timeout)
    first = dist.get_rank() == 0
    with _heard(), _faults():
        options: dict[str, Any] = {"directed": not undirected, "unweighted": unweighted}
        options["no_edge"] = _whole(no_edge)
        found = _from_first(lambda: _read(graph, out, predecessors, no_edge))
        # A matrix is sent in parts, later.
        read, places = _told(found and (_without_matrix(found[0]), found[1]))
        if found is not None:
            read = found[0]
        if read.matrix is not None and read.matrix.dtype == bool:
            read.matrix = np.where(read.matrix, np.float32(1), np.float32(np.inf))
            options["no_edge"] = None
        d = _local(read, mesh, block)
        with _about(graph, read.label):
            made = shortest_path(
                d, return_predecessors=predecessors is not None, checkpoint=checkpoint,
                checkpoint_every=checkpoint_every, threads=threads,
                progress=sys.stderr.isatty() and not as_json, **options,
            )  # fmt: skip
        results = made if predecessors is not None else (made,)
        _write(dict(zip(("distances", "predecessors"), results, strict=False)), places, read)
        if checkpoint is not None and first:
            forget(checkpoint)
    if first:
        _say(
            {
                "nodes": read.nodes,
                "edges": read.edge_count,
                "dtype": str(d.local.dtype).removeprefix("torch."),
                "ranks": f"{d.grid.rows} x {d.grid.columns}",
                "seconds": round(time.perf_counter() - start, 3),
                "files": {
                    name: str(path)
                    for name, path in places.items()
                    if name != "nodes" or read.labels is not None
                },
            },
            as_json,
        )


@contextmanager
def _heard() -> Iterator[None]:
    """What all processes fail with, the first one says; what another one alone fails with, that one."""
    first, store = dist.get_rank() == 0, dist.distributed_c10d._get_default_store()
    shown, kept = sys.stderr, io.StringIO()
    if not first:
        sys.stderr = kept
    try:
        yield
    except typer.Exit:
        if first:
            store.set("failed", "1")
        else:
            try:
                store.wait(["failed"], datetime.timedelta(seconds=3))
            except Exception:  # of types that differ between versions of torch
                shown.write(f"process {dist.get_rank()}: {kept.getvalue()}")
        raise
    finally:
        sys.stderr = shown


def _no_gpus() -> str:
    """Why the processes of this machine do not compute on GPUs; empty where each of them has one."""
    if not tg.cuda_available():
        return str(tg.info()["cuda"]["problem"])
    gpus, processes = torch.cuda.device_count(), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if gpus < processes:
        return (
            f"this machine has {processes} processes and {gpus} GPUs, and each process needs one of its own"
        )
    return ""


def _started(device: str, timeout: float) -> DeviceMesh:
    """The processes that torchrun started, or this one alone, on GPUs or CPUs."""
    with _faults():
        if device not in ("auto", "cpu", "cuda"):
            raise ValueError(f"--device is {device!r}, expected auto, cpu or cuda")
        if not 0 < timeout < 1e9:
            raise ValueError(f"--timeout is {timeout}, expected seconds above 0")
        problem = _no_gpus() if device != "cpu" else ""
        if problem and device == "cuda":
            raise ValueError(f"--device is cuda: {problem}")
        cuda = device != "cpu" and not problem
    # Messages have to come in between the blocks of a product.
    os.environ.setdefault("TORCH_NCCL_HIGH_PRIORITY", "1")
    kind = "cuda" if cuda else "cpu"
    if cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    alone: dict[str, Any] = {}
    if "RANK" not in os.environ:
        alone = {"store": torch._C._distributed_c10d.HashStore(), "rank": 0, "world_size": 1}
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=datetime.timedelta(seconds=timeout), **alone
    )
    return init_device_mesh(kind, (dist.get_world_size(),))


def _from_first(action: Any) -> Any:
    """What an action of the first process returns, or None on the others; its error, on all of them."""
    result = None
    said: list[Any] = [None]
    if dist.get_rank() == 0:
        try:
            result = action()
        except Exception as error:  # whatever it is: the others wait to hear of it
            kinds = {MalformedFile: OSError, OSError: OSError, TypeError: TypeError, ValueError: ValueError}
            kinds[MemoryError] = MemoryError
            kind = next((to for of, to in kinds.items() if isinstance(error, of)), RuntimeError)
            said = [(kind, str(error))]
    dist.broadcast_object_list(said, 0, device=torch.device("cpu"))
    if said[0] is not None:
        kind, text = said[0]
        raise kind(text)
    return result


def _told(x: Any) -> Any:
    """An object of the first process, on all of them."""
    said = [x]
    dist.broadcast_object_list(said, 0, device=torch.device("cpu"))
    return said[0]


def _read(
    graph: Path, out: Path, predecessors: "Path | None", no_edge: "float | None"
) -> tuple[GraphFile, dict[str, Path]]:
    read = read_graph(graph)
    if no_edge is not None and read.matrix is None:
        raise ValueError(f"--no-edge is for dense matrices, and {graph} lists its edges")
    named = [
        path if path is None or path.suffix else path.with_suffix(".npy") for path in (out, predecessors)
    ]
    places = _places(named[0], named[1])
    output.check(places)
    return read, places


def _without_matrix(read: GraphFile) -> GraphFile:
    return replace(read, matrix=None if read.matrix is None else read.matrix[:0])


def _local(read: GraphFile, mesh: DeviceMesh, block: "int | None") -> BlockCyclic:
    """The blocks of this process."""
    numpy_dtype = read.matrix.dtype if read.edges is None else read.edges.weights.dtype
    like = torch.from_numpy(np.empty(0, numpy_dtype))
    made = BlockCyclic.empty(read.nodes, mesh, like.dtype, block=block)
    if read.edges is not None:
        made.local.copy_(torch.from_numpy(_of_edges(read.edges, made)))
        return made
    local = torch.empty(made.local.shape, dtype=like.dtype)
    whole = Layout(np.arange(read.nodes), np.arange(read.nodes))
    held = [whole, *(nowhere() for _ in range(made.grid.size - 1))]
    x = np.ascontiguousarray(read.matrix)
    group = None if made.grid.size == 1 else dist.group.WORLD
    move(torch.from_numpy(x), held, made.layouts, local, made.grid.me, group)
    made.local.copy_(local)
    return made


def _of_edges(edges: Edges, d: BlockCyclic) -> Any:
    local = np.full(tuple(d.local.shape), ranges.extremes(edges.weights.dtype.name)[1], edges.weights.dtype)
    if local.size:
        i, j = np.searchsorted(d.rows, edges.rows), np.searchsorted(d.columns, edges.columns)
        i, j = np.minimum(i, len(d.rows) - 1), np.minimum(j, len(d.columns) - 1)
        here = (d.rows[i] == edges.rows) & (d.columns[j] == edges.columns)
        local[i[here], j[here]] = edges.weights[here]
    return local


def _write(found: dict[str, BlockCyclic], places: dict[str, Path], read: GraphFile) -> None:
    """The first process gathers the results in files without a name, some rows at a time; then names all."""
    with ExitStack() as stack:
        files = _from_first(
            lambda: {
                name: stack.enter_context(tempfile.TemporaryFile(dir=places[name].parent)) for name in found
            }
        )
        errors = [_gathered(x, files and files[name]) for name, x in found.items()]

        def save() -> None:
            for error in errors:
                if error is not None:
                    raise error
            arrays: dict[Path, Any] = {}
            for name, x in found.items():
                dtype = x.local.new_empty(0, device="cpu").numpy().dtype
                whole = (
                    np.memmap(files[name], dtype, "r", shape=(x.n, x.n)) if x.n else np.empty((0, 0), dtype)
                )
                arrays[places[name]] = whole
            arrays[places["nodes"]] = None if read.labels is None else np.asarray(read.labels, np.int64)
            output.write_arrays(arrays)

        _from_first(save)


def _gathered(x: BlockCyclic, file: Any) -> "OSError | None":
    """Writes a matrix to a file of the first process; what went wrong there, once all is sent."""
    error = None
    local = x.local.cpu()
    high = max(1, SLAB // max(x.n * local.element_size(), 1))
    group = None if x.grid.size == 1 else dist.group.WORLD
    for i in range(0, x.n, high):
        rows = np.arange(i, min(i + high, x.n))
        wanted = [Layout(rows, np.arange(x.n)), *(nowhere() for _ in range(x.grid.size - 1))]
        part = local.new_empty(len(rows) if file else 0, x.n if file else 0)
        move(local, x.layouts, wanted, part, x.grid.me, group)
        if file and error is None:
            try:
                file.write(part.numpy().data)
                file.flush()
            except OSError as e:
                error = e
    return error


def main() -> None:
    """Entry point of the command."""
    code = _ran()
    # A mesh that outlives its process group crashes when Python ends.
    gc.collect()
    if dist.is_initialized():
        dist.destroy_process_group()
    sys.exit(code)


def _ran() -> Any:
    try:
        app()
    except SystemExit as end:
        return end.code
    return 0
