"""Best paths beside librosa's (where it is installed) and a loop in torch: wall times of one call each.

python benchmarks/python/viterbi.py [--steps 5000] [--cuda]

On a GPU also the share of the larger floor: arithmetic, 64 pairs of an addition and a maximum a clock and
multiprocessor at the highest clock, or memory, the emissions read once at the rate of a copy in the same run.
"""

import argparse
import subprocess
import time

import numpy as np
import torch
import tropical_gemm as tg


def timed(function, synchronize=lambda: None):
    """The best of three calls, or of fewer that take long, and the result."""
    times = []
    while not times or (sum(times) < 2 and len(times) < 3):
        synchronize()
        start = time.perf_counter()
        result = function()
        synchronize()
        times.append(time.perf_counter() - start)
    return min(times), result


def torch_loop(emission, transition):
    """The recurrence as one writes it in torch, with stored backpointers."""
    value, taken = emission[:, 0], []
    for t in range(1, emission.shape[1]):
        best = (value[:, :, None] + transition).max(dim=1)
        taken.append(best.indices)
        value = best.values + emission[:, t]
    scores, state = value.max(dim=1)
    path = [state]
    for back in reversed(taken):
        path.append(back.gather(1, path[-1][:, None])[:, 0])
    return torch.stack(path[::-1], 1), scores


def floors():
    """Of the GPU: additions with maxima, and bytes, a second."""
    query = ["nvidia-smi", "--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits", "--id=0"]
    clock = float(subprocess.run(query, capture_output=True, text=True, check=True).stdout) * 1e6
    pairs = 64 * torch.cuda.get_device_properties(0).multi_processor_count * clock
    x, y = (torch.zeros(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(2))
    seconds, _ = timed(lambda: y.copy_(x), torch.cuda.synchronize)
    return pairs, 2 * x.numel() / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--cuda", action="store_true")
    arguments = parser.parse_args()
    try:
        from librosa.sequence import viterbi as librosa

        librosa(np.full((2, 2), 0.5, np.float32), np.full((2, 2), 0.5, np.float32))  # compiles itself
    except ImportError:
        librosa = None
    device = "cuda" if arguments.cuda else "cpu"
    synchronize = torch.cuda.synchronize if arguments.cuda else (lambda: None)
    rng = np.random.default_rng(0)
    print(f"{arguments.steps} steps, float32, {device}, {torch.get_num_threads()} threads")
    rates = floors() if arguments.cuda else None
    print("| states | sequences | `tg.viterbi` | a loop in torch | librosa | share of the floor |")
    print("|---|---|---|---|---|---|")
    for states in (60, 1440):
        for sequences in (1, 64):
            probabilities = 1 - rng.random((sequences, arguments.steps, states), np.float32)
            transition = rng.dirichlet(np.ones(states), states).astype(np.float32)
            e, a = (torch.from_numpy(np.log(x)).to(device) for x in (probabilities, transition))
            ours, got = timed(lambda e=e, a=a: tg.viterbi(e, a), synchronize)
            # The loop holds (sequences, states, states): not for the largest on a CPU.
            loop = "-"
            if arguments.cuda or sequences * states < 10_000:
                seconds, (_, scores) = timed(lambda e=e, a=a: torch_loop(e, a), synchronize)
                assert torch.equal(scores, got.scores)
                loop = f"{seconds:.3f} s ({seconds / ours:.1f})"
            peer = "-"
            if librosa is not None and sequences * states < 10_000:
                seconds, _ = timed(lambda p=probabilities, a=transition: librosa(p.swapaxes(1, 2), a))
                peer = f"{seconds:.3f} s ({seconds / ours:.1f})"
            share = "-"
            if rates is not None:
                arithmetic = sequences * (arguments.steps - 1) * states**2 / rates[0]
                memory = e.numel() * e.element_size() / rates[1]
                name, floor = max(("arithmetic", arithmetic), ("memory", memory), key=lambda x: x[1])
                share = f"{floor / ours:.1%} of {1e3 * floor:.2f} ms ({name})"
            print(f"| {states} | {sequences} | {ours:.4f} s | {loop} | {peer} | {share} |", flush=True)


if __name__ == "__main__":
    main()
