"""Forked workers of a DataLoader, and two processes that train together."""

import multiprocessing

import pytest
import tropical_gemm.torch as tgt
from gpu import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch_cases import normal, same


class Products(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        # No backward pass by autograd, which torch refuses in a fork of a process that has had one.
        a = normal(64, 64, dtype=torch.float32, seed=i)
        c, argmax = tgt.matmul(a, a, return_argmax=True)
        return c, *tgt.matmul_backward(c, argmax, a, a)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork")
def test_forked_workers():
    data = Products()
    expected = [data[i] for i in range(len(data))]  # the parent has started its threads
    loader = DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=120)
    for of_worker, of_parent in zip(loader, expected, strict=True):
        same(tuple(of_worker), of_parent, rtol=0, atol=0)


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        tgt.TropicalLinear(8, 16), torch.nn.Linear(16, 4), tgt.TropicalLinear(4, 2, "min_plus")
    )


def train(model, x, y):
    """The losses of some steps on whole batches."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for _ in range(4):
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def one_of_two(rank, rendezvous, results):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=2)
    x, y = normal(16, 8, dtype=torch.float32), normal(16, 2, dtype=torch.float32)
    half = slice(8 * rank, 8 * rank + 8)
    losses = train(DistributedDataParallel(network()), x[half], y[half])
    distributed.all_reduce(losses)
    if rank == 0:
        results.put((losses / 2).tolist())
    distributed.destroy_process_group()


@pytest.mark.skipif(not distributed.is_available(), reason="torch without torch.distributed")
def test_two_processes_train_as_one(tmp_path):
    expected = train(network(), normal(16, 8, dtype=torch.float32), normal(16, 2, dtype=torch.float32))
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=one_of_two, args=(r, tmp_path / "meet", results)) for r in range(2)]
    for process in processes:
        process.start()
    try:
        got = torch.tensor(results.get(timeout=180))
    finally:
        for process in processes:
            process.join(30)
            process.kill()
    same(got, expected, rtol=1e-5, atol=1e-6)
