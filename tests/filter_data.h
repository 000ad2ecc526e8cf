// Operands on which products through bounds are tested: what they are good at, what they are bad at, and what they must
// not be wrong at. Entries of a are at (row, k), of b at (column, k), for max_plus.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

namespace tropical::testing {

// Numbers that belong to a place.
class Draw {
 public:
  explicit Draw(uint64_t seed) : bits_(mixed(seed)) {}
  uint64_t bits() { return bits_ = mixed(bits_); }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double normal() {
    const double u = (static_cast<double>(bits() >> 11) + 1) * 0x1p-53;
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * unit());
  }
  bool one_in(uint64_t n) { return bits() % n == 0; }
  double grid(int steps) { return static_cast<double>(bits() % static_cast<uint64_t>(steps)); }

 private:
  static uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  uint64_t bits_;
};

struct Place {
  bool is_a;
  int64_t line, k;
};
struct FilterData {
  const char* name;
  double (*entry)(Place at, Draw& draw);
  bool easy;           // nearly all outputs are proved at once
  bool easy_in_float;  // entries rounded to float
};

inline constexpr double kInf = std::numeric_limits<double>::infinity();

// How far apart two points of a plane are that belong to numbers.
inline double distance(int64_t x, int64_t y) {
  Draw p(static_cast<uint64_t>(x)), q(static_cast<uint64_t>(y));
  const double dx = p.unit() - q.unit(), dy = p.unit() - q.unit();
  return std::sqrt(dx * dx + dy * dy);
}

inline constexpr FilterData kFilterData[] = {
    {"uniform", [](Place, Draw& d) { return d.unit(); }, true, true},
    {"randn", [](Place, Draw& d) { return d.normal(); }, true, true},
    {"all negative", [](Place, Draw& d) { return -d.unit() - 1e-3; }, true, true},
    {"log-probabilities", [](Place, Draw& d) { return std::log(d.unit() + 0x1p-53); }, true, true},
    {"integers 0..999", [](Place, Draw& d) { return d.grid(1000); }, true, true},
    {"integers 0..9", [](Place, Draw& d) { return d.grid(10); }, true, true},
    {"integers -2..2", [](Place, Draw& d) { return d.grid(5) - 2; }, true, true},
    {"constant", [](Place, Draw&) { return 0.1; }, true, true},
    {"0, -0, -1", [](Place, Draw& d) { return d.one_in(3)   ? -0.0
                                              : d.one_in(2) ? 0.0
                                                            : -1.0; }, false, false},
    {"cents", [](Place, Draw& d) { return d.grid(1000) * 0.01; }, false, false},
    {"thousandths on integers", [](Place, Draw& d) { return d.grid(1000) + 1e-3 * d.grid(8); }, false, false},
    {"1/64 grid with 2^-30", [](Place, Draw& d) { return d.grid(64) * 0x1p-6 + d.unit() * 0x1p-30; }, false, false},
    {"2^-20 grid with 2^-45", [](Place, Draw& d) { return d.grid(1 << 20) * 0x1p-20 + d.unit() * 0x1p-45; }, false,
     false},
    {"integers with 1e-9", [](Place, Draw& d) { return d.grid(100) + 1e-9 * d.unit(); }, false, false},
    {"1e12 + uniform", [](Place, Draw& d) { return 1e12 + d.unit(); }, false, false},
    {"1e5 against -1e5", [](Place p, Draw& d) { return (p.is_a ? 1e5 : -1e5) + 1e-3 * d.normal(); }, true, false},
    {"-1e30 for no edge", [](Place, Draw& d) { return d.one_in(2) ? -1e30 : 1e6 + 100 * d.unit(); }, true, false},
    {"rows of either sign", [](Place p, Draw& d) { return p.is_a && p.line % 2 ? -10 - d.unit() : d.unit(); }, true,
     true},
    {"rows of all scales",
     [](Place p, Draw& d) {
       return d.normal() * std::exp(20 * Draw(static_cast<uint64_t>(2 * p.line + p.is_a)).normal());
     },
     false, false},
    {"exp(20 randn)", [](Place p, Draw& d) { return d.one_in(10) ? 0 : std::exp(20 * d.normal()) * (p.is_a ? 1 : -1); },
     false, false},
    {"rising with k", [](Place p, Draw& d) { return 1e-3 * static_cast<double>(p.k) + d.unit(); }, true, true},
    {"two hops in a plane",
     [](Place p, Draw&) { return -distance(p.is_a ? p.line : p.line + (1 << 20), p.k + (1 << 21)); }, false, false},
    {"denormals", [](Place, Draw& d) { return d.grid(1000) * 5e-324; }, false, false},
    {"1e-310", [](Place, Draw& d) { return 1e-310 * d.unit(); }, false, false},
    {"1e200 randn", [](Place, Draw& d) { return 1e200 * d.normal(); }, false, false},
    {"sums that overflow", [](Place, Draw& d) { return 1.7e308 * (2 * d.unit() - 1); }, false, false},
    {"sums that overflow downwards", [](Place, Draw& d) { return -1e308 - 7e307 * d.unit(); }, false, false},
    {"NaN in places", [](Place, Draw& d) { return d.one_in(5000) ? -std::nan("") : d.normal(); }, true, true},
    {"NaN and -inf", [](Place, Draw& d) { return d.one_in(999) ? std::nan("")
                                                 : d.one_in(3) ? -kInf
                                                               : d.unit(); }, true,
     true},
    {"inf in places", [](Place, Draw& d) { return d.one_in(5000) ? kInf : d.normal(); }, false, false},
    {"both infinities", [](Place, Draw& d) { return d.one_in(999)  ? kInf
                                                    : d.one_in(50) ? -kInf
                                                                   : d.normal(); }, false,
     false},
    {"-inf 30 %, whole rows",
     [](Place p, Draw& d) { return d.bits() % 10 < 3 || (p.is_a && p.line % 17 == 0) ? -kInf : d.normal(); }, true,
     true},
    {"-inf 70 %, whole columns",
     [](Place p, Draw& d) { return d.bits() % 10 < 7 || (!p.is_a && p.line % 5 == 0) ? -kInf : d.grid(9); }, true,
     true},
    {"1e38 randn", [](Place, Draw& d) { return 5e37 * d.normal(); }, true, true},
    {"1e6 + randn", [](Place, Draw& d) { return 1e6 + d.normal(); }, true, false},
    {"distances of many scales",
     [](Place p, Draw& d) {
       return -std::exp(d.normal()) * std::pow(10, 4 * Draw(static_cast<uint64_t>(p.line)).unit() - 2);
     },
     true, false},
    {"nothing but -inf", [](Place, Draw&) { return -kInf; }, true, true},
};

// A row-major matrix of rows x cols, where `is_a`: (line, k), else (k, line).
// Entries are those of the whole matrix from first_row on.
inline void fill(const FilterData& data, bool is_a, bool negated, int64_t rows, int64_t cols, uint64_t seed, double* to,
                 int64_t first_row = 0) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      const int64_t row = first_row + i;
      Draw draw(seed + (is_a ? 0 : uint64_t{1} << 61) + static_cast<uint64_t>(row * cols + j) * 64);
      const double x = data.entry(is_a ? Place{true, row, j} : Place{false, j, row}, draw);
      to[i * cols + j] = negated ? -x : x;
    }
}

}  // namespace tropical::testing
