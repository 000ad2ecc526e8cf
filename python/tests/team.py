"""Processes that run the same function together, as the ranks of torch.distributed."""

import datetime
import importlib
import multiprocessing
import os
import tempfile
import traceback
from pathlib import Path

import torch
from torch import distributed


def _serve(rank, size, backend, meeting, seconds, pipe):
    torch.set_num_threads(1)
    device = torch.device("cpu")
    if backend == "nccl":
        device = torch.device("cuda", rank)
        torch.cuda.set_device(device)
    distributed.init_process_group(
        backend,
        init_method=f"file://{meeting}",
        rank=rank,
        world_size=size,
        timeout=datetime.timedelta(seconds=seconds),
        device_id=device if backend == "nccl" else None,
    )
    while True:
        call = pipe.recv()
        if call is None:
            break
        module, name, arguments = call
        try:
            pipe.send(("done", getattr(importlib.import_module(module), name)(**arguments)))
        except Exception as error:
            traceback.print_exc()
            pipe.send((type(error).__name__, str(error)))
    distributed.destroy_process_group()


class Team:
    """``size`` processes; started once, since each has to import torch."""

    def __init__(self, size, backend="gloo", seconds=120):
        self._folder = tempfile.TemporaryDirectory()
        context = multiprocessing.get_context("spawn")
        meeting = Path(self._folder.name) / "meet"
        self.pipes, self.processes = [], []
        for rank in range(size):
            here, there = context.Pipe()
            self.pipes.append(here)
            self.processes.append(
                context.Process(
                    target=_serve, args=(rank, size, backend, meeting, seconds, there), daemon=True
                )
            )
        # More threads than processors would wait for each other most of the time.
        threads = os.environ.get("OMP_NUM_THREADS")
        os.environ["OMP_NUM_THREADS"] = "1"
        try:
            for process in self.processes:
                process.start()
        finally:
            if threads is None:
                del os.environ["OMP_NUM_THREADS"]
            else:
                os.environ["OMP_NUM_THREADS"] = threads

    def ask(self, job, **arguments):
        """What each rank returned, as ("done", value), or raised, as (name of the type, text)."""
        for pipe in self.pipes:
            pipe.send((job.__module__, job.__name__, arguments))
        return [pipe.recv() if pipe.poll(300) else ("silent", "for 300 s") for pipe in self.pipes]

    def run(self, job, **arguments):
        """What each rank returned."""
        answers = self.ask(job, **arguments)
        assert {kind for kind, _ in answers} == {"done"}, answers
        return [value for _, value in answers]

    def close(self):
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.processes:
            process.join(30)
            process.kill()
        self._folder.cleanup()
