// Lowest energies of ±J spin glasses on open L x L lattices and how many configurations have them, by looking at all
// 2^(L*L) configurations: makes python/tests/ground_states.csv. Not part of the build:
//   g++ -std=c++20 -O3 -march=native tests/ground_state_table.cpp -o table && python3 -c '
//   import numpy as np
//   for n in (5, 6):
//       for seed in range(20): print(n, *np.random.default_rng(seed).choice([-1, 1], 2 * n * (n - 1)))' | ./table
// A line of input has L and the couplings: first of bonds to the right, row by row, then of bonds down, row by row.
// A line of output has L, the number of the instance, the energy -sum J s s', and the number of configurations.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <iostream>
#include <vector>

// Bonds that are not satisfied, for the rows [first, last) of the lattice: bit r * n + c of `spins` is a spin.
struct Lattice {
  int n;
  uint64_t right = 0, down = 0;  // bit of a bond's first spin: whether its coupling is -1
  uint64_t has_right = 0, has_down = 0;

  int broken(uint64_t spins) const {
    return std::popcount(((spins ^ spins >> 1) ^ right) & has_right) +
           std::popcount(((spins ^ spins >> n) ^ down) & has_down);
  }
};

int main() {
  std::ios::sync_with_stdio(false);
  int n = 0, seen[65] = {};
  while (std::cin >> n) {
    Lattice all{n};
    for (int down = 0; down < 2; ++down)
      for (int r = 0; r < n - down; ++r)
        for (int c = 0; c < n - 1 + down; ++c) {
          int coupling = 0;
          std::cin >> coupling;
          const uint64_t bit = uint64_t{1} << (r * n + c);
          (down ? all.has_down : all.has_right) |= bit;
          if (coupling < 0) (down ? all.down : all.right) |= bit;
        }
    // A word is a high part, fixed in turn, and a low part of which all are tried: what either breaks by itself is
    // looked up, and bonds between them depend on the last row of the low part.
    const int low_rows = n / 2, low_bits = low_rows * n, row_bits = low_bits - n;
    const uint64_t low_mask = (uint64_t{1} << low_bits) - 1, between = low_mask & ~((uint64_t{1} << row_bits) - 1);
    Lattice low = all, high = all;
    low.has_right &= low_mask, low.has_down &= low_mask & ~between;
    high.has_right &= ~low_mask, high.has_down &= ~low_mask;
    std::vector<uint8_t> low_broken(uint64_t{1} << low_bits);
    for (uint64_t s = 0; s <= low_mask; ++s) low_broken[s] = static_cast<uint8_t>(low.broken(s));
    int best = 255;
    uint64_t ways = 0;
    for (uint64_t h = 0; h < uint64_t{1} << (n * n - low_bits); ++h) {
      const int above = high.broken(h << low_bits);
      for (uint64_t row = 0; row < uint64_t{1} << n; ++row) {
        const uint64_t spins = h << low_bits | row << row_bits;
        const int crossing = std::popcount(((spins ^ spins >> n) ^ all.down) & between);
        const auto rest = static_cast<uint8_t>(above + crossing);
        const uint8_t* lows = &low_broken[row << row_bits];
        uint8_t least = 255;
        for (uint64_t s = 0; s < uint64_t{1} << row_bits; ++s)
          least = std::min<uint8_t>(least, static_cast<uint8_t>(lows[s] + rest));
        if (least > best) continue;
        uint32_t equal = 0;
        for (uint64_t s = 0; s < uint64_t{1} << row_bits; ++s) equal += static_cast<uint8_t>(lows[s] + rest) == least;
        ways = least < best ? equal : ways + equal;
        best = least;
      }
    }
    std::cout << n << ',' << seen[n]++ << ',' << 2 * best - 2 * n * (n - 1) << ',' << ways << std::endl;
  }
}
