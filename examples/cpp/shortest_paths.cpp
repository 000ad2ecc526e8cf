// Shortest connections of at most two roads between five towns, and the town in between.
#include <tropical_gemm/tropical_gemm.h>

#include <array>
#include <cstdio>
#include <limits>

namespace {

constexpr size_t kTowns = 5;
constexpr size_t kPairs = kTowns * kTowns;
constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr std::array<const char*, kTowns> kNames = {"Aa", "Bree", "Cley", "Dale", "Eye"};

}  // namespace

int main() {
  const std::array<double, kPairs> roads = {
      0,     4,     kNone, 9,     kNone,  //
      4,     0,     3,     kNone, kNone,  //
      kNone, 3,     0,     2,     kNone,  //
      9,     kNone, 2,     0,     kNone,  //
      kNone, kNone, kNone, kNone, 0,
  };
  std::array<double, kPairs> lengths{};
  std::array<int32_t, kPairs> via{};

  const tropical::MatrixView<const double> a(roads.data(), {kTowns, kTowns});
  const tropical::MatrixView<double> c(lengths.data(), {kTowns, kTowns});
  const tropical::MatrixView<int32_t> argmax(via.data(), {kTowns, kTowns});
  try {
    // lengths[i][j] = min over k of roads[i][k] + roads[k][j]; via[i][j] is that k, -1 where there is no way.
    tropical::matmul<tropical::MinPlus, double>(a, a, c, argmax);
  } catch (const tropical::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }

  for (size_t i = 0; i < kTowns; ++i) {
    for (size_t j = i + 1; j < kTowns; ++j) {
      const int32_t k = via[i * kTowns + j];
      std::printf("%-4s - %-4s: ", kNames[i], kNames[j]);
      if (k < 0)
        std::printf("no way\n");
      else
        std::printf("%g, by %s\n", lengths[i * kTowns + j], kNames[static_cast<size_t>(k)]);
    }
  }
  return 0;
}
