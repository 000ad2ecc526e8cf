// Operands, made on the device.
#pragma once
#include "cuda/elements.cuh"
#include "harness.cuh"

namespace tropical::cuda {

enum class Data { uniform, normal, negative, mixed, infinities, nans, blocks, integers, grid, huge, logs, points };
inline const char* const kDataNames[] = {"uniform",        "randn",       "negative",          "mixed rows",
                                         "-inf 30 %",      "NaN",         "mixed blocks",      "integers 0..999",
                                         "grid and noise", "1e200 randn", "log-probabilities", "points"};

__device__ inline uint64_t hashed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

__device__ inline double number(Data kind, int64_t row, int64_t col, uint64_t at, bool is_a) {
  const uint64_t bits = hashed(2 * at + (is_a ? 0 : uint64_t{1} << 62)), more = hashed(bits);
  const double u = static_cast<double>(bits >> 40) / (1 << 24);
  const double v = static_cast<double>((more >> 40) + 1) / (1 << 24);
  const double normal = sqrt(-2 * log(v)) * cospi(2 * u);
  switch (kind) {
    case Data::uniform:
      return u;
    case Data::negative:
      return -u - 1e-3;
    case Data::mixed:
      return is_a && (row & 1) ? -10 - u : u;
    case Data::blocks:
      return is_a && (row / 256 & 1) ? -10 - u : u;
    case Data::infinities:
      return more % 100 < 30 || (is_a && row % 17 == 0) ? -INFINITY : normal;
    case Data::nans:
      return more % 20000 == 0 ? NAN : normal;
    case Data::integers:
      return floor(u * 1000);
    case Data::grid:  // with differences below what f32 tells apart
      return floor(u * 64) / 64 + v * 0x1p-30;
    case Data::huge:
      return 1e200 * normal;
    case Data::logs:
      return log(v);
    case Data::points: {  // distances by way of points of a plane: near-ties along lines
      const auto place = [](uint64_t point, int axis) { return static_cast<double>(hashed(2 * point + axis) >> 40); };
      const uint64_t x = static_cast<uint64_t>(is_a ? row : col) + (is_a ? 0 : 1 << 20);
      const uint64_t y = static_cast<uint64_t>(is_a ? col : row) + (1 << 21);
      return -hypot(place(x, 0) - place(y, 0), place(x, 1) - place(y, 1));
    }
    default:
      return normal;
  }
}

// rows x cols elements of A or B, `negated` for min semirings. Integers: times 700, infinite ones at the extremes.
template <class T>
__global__ void fill(T* to, Data kind, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride, bool is_a,
                     bool negated) {
  for (int64_t at = blockIdx.x * int64_t{256} + threadIdx.x; at < rows * cols; at += gridDim.x * int64_t{256}) {
    const int64_t row = at / cols, col = at % cols;
    double x = number(kind, row, col, static_cast<uint64_t>(at), is_a);
    if (negated) x = -x;
    T& element = to[row * row_stride + col * col_stride];
    if constexpr (is_half_v<T>)
      element = round_to_half<T>(static_cast<float>(x));
    else if constexpr (std::is_integral_v<T>)
      element = isinf(x) ? (x < 0 ? lowest<T>() : highest<T>()) : static_cast<T>(x * 700);
    else
      element = static_cast<T>(x);
  }
}

}  // namespace tropical::cuda
