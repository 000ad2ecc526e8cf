// Register-only loops: what the arithmetic alone allows.
#pragma once
#include "cuda/core_ops.cuh"
#include "harness.cuh"

namespace tropical::cuda {

inline constexpr int kRateResults = 32, kRateThreads = 256;

// Each result takes two steps a round, from operands of its own and two that all share.
template <class Core, Mode kMode>
__global__ void __launch_bounds__(kRateThreads)
    register_rate(typename Core::T* data, typename Core::T a0, typename Core::T a1, int rounds) {
  using T = typename Core::T;
  T best[kRateResults], y[kRateResults], x0 = a0, x1 = a1;
#pragma unroll
  for (int i = 0; i < kRateResults; ++i) y[i] = data[threadIdx.x + i], best[i] = Core::worst();
  for (int r = 0; r < rounds; ++r) {
    // Operands that change, lest a compiler keeps the candidates from one round to the next.
    if constexpr (std::is_floating_point_v<T>)
      x0 += a0, x1 += a1;
    else
      x0 ^= r, x1 ^= r;
#pragma unroll
    for (int i = 0; i < kRateResults; ++i) Core::template step<kMode>(x0, y[i], x1, y[(i + 1) % kRateResults], best[i]);
  }
  T all = best[0];
#pragma unroll
  for (int i = 1; i < kRateResults; ++i) all = Core::merged(all, best[i]);
  data[blockIdx.x * kRateThreads + threadIdx.x] = all;
}

// `words`: steps of k in one element of the core.
template <class Core, Mode kMode = Mode::value>
double rate(const char* name, typename Core::T a0, typename Core::T a1, int words) {
  using T = typename Core::T;
  const int blocks = context.multiprocessors * 4, rounds = 1 << 12;
  const size_t bytes = sizeof(T) * static_cast<size_t>(blocks * kRateThreads + 64);
  const Memory memory(bytes);
  check(cudaMemset(memory.data, 1, bytes), "memset");
  const double s = seconds_of(
      [&] {
        register_rate<Core, kMode>
            <<<blocks, kRateThreads, 0, context.stream>>>(static_cast<T*>(memory.data), a0, a1, rounds);
      },
      false, 5);
  const double r = rate_of(2.0 * kRateResults * rounds * kRateThreads * blocks * words, s);
  std::printf("| register rate | %-28s | %6.1f MAC/clk/SM |\n", name, r);
  return r;
}

}  // namespace tropical::cuda
