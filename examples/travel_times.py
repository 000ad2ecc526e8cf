"""Travel times of single streets from the times of whole trips, by gradients through shortest paths, in JAX.

A town is a grid of streets whose travel times nobody knows; only how long trips between some corners took.
All shortest paths are a few min_plus products, so their derivative says which streets each trip went through,
and gradient descent finds times that explain the trips, and those of trips never seen.

    python examples/travel_times.py
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from tropical_gemm.jax import matmul


def streets(side: int) -> np.ndarray:
    """The two ends of every street of a grid, (streets, 2)."""
    corner = np.arange(side * side).reshape(side, side)
    across, along = (corner[:, :-1], corner[:, 1:]), (corner[:-1], corner[1:])
    return np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in (across, along)])


def all_trips(log_times: jax.Array, ends: np.ndarray, corners: int) -> jax.Array:
    """The shortest time between any two corners: the one-street trips, squared until nothing is shorter."""
    times = jnp.exp(log_times)
    trips = jnp.full((corners, corners), jnp.inf).at[ends[:, 0], ends[:, 1]].set(times)
    trips = jnp.minimum(trips, trips.T).at[np.diag_indices(corners)].set(0)
    for _ in range(int(np.ceil(np.log2(corners)))):
        trips = matmul(trips, trips, semiring="min_plus")
    return trips


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=8, help="corners along a side of the town")
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    ends, corners = streets(args.side), args.side**2
    truth = all_trips(jnp.asarray(rng.normal(0, 0.5, len(ends)), jnp.float32), ends, corners)
    pairs = rng.permutation(np.argwhere(np.triu(np.ones((corners, corners)), 1)))
    seen, unseen = np.split(pairs, [len(pairs) // 2])

    def error(log_times: jax.Array, trips: np.ndarray) -> jax.Array:
        """The mean relative error of these trips."""
        found = all_trips(log_times, ends, corners)[trips[:, 0], trips[:, 1]]
        return jnp.abs(found / truth[trips[:, 0], trips[:, 1]] - 1).mean()

    gradient = jax.jit(jax.value_and_grad(lambda log_times: error(log_times, seen)))
    of_unseen = jax.jit(lambda log_times: error(log_times, unseen))

    log_times, mean, square = (jnp.zeros(len(ends)) for _ in range(3))  # Adam
    for step in range(1, args.steps + 1):
        value, slope = gradient(log_times)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        rate = 0.03 * (1 - step / (args.steps + 1))
        log_times -= rate * (mean / (1 - 0.9**step)) / (jnp.sqrt(square / (1 - 0.99**step)) + 1e-8)
        if step in (1, args.steps) or step % 100 == 0:
            print(
                f"step {step}: trips are off by {value:.1%}, trips never seen by {of_unseen(log_times):.1%}"
            )


if __name__ == "__main__":
    main()
