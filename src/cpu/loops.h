// The blocked loops around the register tiles.
#pragma once
#include "cpu/blocking.h"
#include "cpu/filter_kernels.h"
#include "cpu/kernels.h"
#include "filter.h"
#include "params.h"
#include "workspace.h"

namespace tropical::cpu {

// One member of a batch on one path. Pointers are to element (0, 0), strides in elements of In.
struct Product {
  const Kernels* kernels = nullptr;
  const FilterKernels* filter = nullptr;  // for run_filtered, with the tally
  Filtering filtering = Filtering::automatic;
  FilterTally* tally = nullptr;
  const char* a = nullptr;
  const char* b = nullptr;
  char* c = nullptr;
  int32_t* argmax = nullptr;
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_col = 0, b_row = 0, b_col = 0, c_row = 0, c_col = 0, argmax_row = 0, argmax_col = 0;
  bool accumulate = false;
  bool check_finite = false;  // look for infinities and NaN on the way
  int64_t index_offset = 0;
  CancelFlag cancel;

  int64_t lanes() const { return ceil_div(n, kernels->columns_per_lane); }
  Source a_source(int64_t i, int64_t rows, int64_t k0, int64_t ks) const {
    return {a + (i * a_row + k0 * a_col) * kernels->in_bytes, a_row, a_col, rows, ks};
  }
  Source b_source(int64_t k0, int64_t ks, int64_t j, int64_t cols) const {
    return {b + (k0 * b_row + j * b_col) * kernels->in_bytes, b_row, b_col, ks, cols};
  }
};

// Rows [i0, i1) and lanes [j0, j1) of C.
struct Rectangle {
  int64_t i0, i1, j0, j1;
};

// Computes one rectangle. Returns whether all elements looked at were finite (true unless check_finite).
// Throws Error(cancelled).
bool run_rectangle(const Product& product, const Rectangle& rectangle);

// A run of equal panels that covers part of a row of C. The panels of a run are whole, or it is one panel of which
// `valid` lanes exist: a masked tile handles it in place, any other tile needs padded buffers.
struct PanelRun {
  const TileWidth* width;
  int64_t lane;
  int64_t panels;
  int valid;
  bool masked;

  bool padded() const { return valid < width->lanes && !masked; }
};
inline constexpr int kMaxRuns = 3;
// Splits `lanes` into runs of the family's widths; returns how many.
int split_lanes(const TileFamily& family, int64_t lanes, PanelRun (&runs)[kMaxRuns]);

}  // namespace tropical::cpu
