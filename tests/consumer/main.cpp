// Shortest paths of two edges, through the typed views.
#include <tropical_gemm/tropical_gemm.h>

#include <cstdio>
#include <limits>

int main() {
  constexpr float kNone = std::numeric_limits<float>::infinity();
  const float edges[] = {0, 3, kNone, kNone, 0, 4, 1, kNone, 0};
  float paths[9];
  int32_t via[9];
  const tropical::MatrixView<const float> a(edges, {3, 3});
  tropical::matmul<tropical::MinPlus, float>(a, a, {paths, {3, 3}}, tropical::MatrixView<int32_t>(via, {3, 3}));
  const bool right = paths[2] == 7 && via[2] == 1 && paths[3] == 5 && via[3] == 2;
  std::printf("tropical-gemm %s on %s: %s\n", TROPICAL_GEMM_VERSION, tropical::build_info().isa.c_str(),
              right ? "right" : "wrong");
  return right ? 0 : 1;
}
