// What one instruction set offers for certified filtering through 16-bit fixed point: plain function pointers, as in
// kernels.h. docs/certified-filtering.md has the bounds that these compute and the proof that they make.
#pragma once
#include <cstdint>

#include "tropical_gemm/dtype.h"
#include "tropical_gemm/semiring.h"

namespace tropical::cpu {

inline constexpr int kFilterChunk = 32;       // k steps whose bounds share one maximum
inline constexpr int kFilterFloor = -16384;   // the lowest operand: a sum of two does not wrap
inline constexpr int kFilterMaxColumns = 64;  // of a panel: one word of marks
inline constexpr int kFilterMaxRows = 12;     // of a tile
inline constexpr int kFilterShapes = 5;
// No sum of three numbers below this overflows, nor does its error term.
inline constexpr double kFilterRange = 0x1p1000;

// Bounds of rows x columns outputs over `chunks` chunks.
struct FilterTileCall {
  const int16_t* a;  // rows, contiguous along k
  int64_t a_row;
  const int16_t* b;  // a panel: `columns` a step
  int64_t chunks;
  int16_t *best, *second, *ids;  // rows of `columns`: the best bound of a chunk, that of another, and which is best
};
using FilterTileFn = void (*)(const FilterTileCall&);

// One row of a tile: from its bounds to its results. Elements are of T, the type of the operands.
struct FilterRow {
  const void* a;  // the row of A, elements a_k apart
  int64_t a_k;
  const void* b;         // the panel of B: `columns` a step
  const int16_t* a_low;  // the row and the panel in fixed point, the latter column by column within a chunk
  const int16_t* b_low;
  const int16_t *best, *second, *ids;
  double row_best;             // r
  const double* column_bests;  // c
  double unit;                 // g
  int64_t k;
  int columns;  // that exist
  bool argmax;
  bool proves;   // tests alone do without
  void* values;  // T: C itself or a buffer, of whole panels
  void* index;   // signed integers as wide as T
};

struct FilterKernels {
  int64_t least_values = 0, least_argmax = 0;  // the k from which it wins by a tenth or so, where m and n are not small
  int columns = 0;
  int rows[kFilterShapes] = {};  // fall, the last is 1
  FilterTileFn tile[kFilterShapes] = {};
  // The best element of n, in the order of max (min_plus: negated); false if one is NaN, infinitely good or the best
  // is beyond kFilterRange.
  bool (*best_of_line)(const void* line, int64_t n, double* best) = nullptr;
  // The same for each of `lanes` columns (a multiple of 8) of a panel of k rows.
  bool (*best_of_columns)(const void* panel, int lanes, int64_t k, double* best) = nullptr;
  // Upper bounds of (element - best) / unit as integers; up to a whole chunk they are filled with kFilterFloor.
  void (*lower_line)(const void* line, int64_t n, double best, double unit, int16_t* out) = nullptr;
  // The same for a panel of `columns`, as it is and column by column within each chunk.
  void (*lower_panel)(const void* panel, int64_t k, const double* best, double unit, int16_t* out,
                      int16_t* by_column) = nullptr;
  // The best candidates of one row with 8 columns.
  void (*sample)(const void* a, int64_t a_k, const void* panel, int64_t k, double* best) = nullptr;
  // Values and indices of a row; returns which of them are not proven. Adds what it did to `work`.
  uint64_t (*settle)(const FilterRow&, int64_t* work) = nullptr;
  // One output of the row anew, from all k whose bound does not rule them out. Returns its work.
  int64_t (*rescan)(const FilterRow&, int column) = nullptr;
};

// The kernels of the instruction set in use; null where filtering is not offered.
const FilterKernels* find_filter(Semiring semiring, DType dtype);

}  // namespace tropical::cpu
