// What the steps of a panel are given, for every instruction set.
#pragma once
#include <algorithm>

#include "params.h"

namespace tropical::cpu {

// Types whose columns are taken a vector at a time, with indices as wide as they are.
template <class T>
inline constexpr bool kPanelVectors =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;
template <class T>
using PanelIndex = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
inline constexpr int64_t kPanelLanes = 64;  // at least those of every vector

// Some columns of the rows of a pivot.
struct PanelCall {
  void* d;     // compact copy: rows of ld elements
  void* pred;  // PanelIndex, or null
  int64_t ld, rows;
  void* multipliers;  // [i][k]: row i at column k before step k
  int64_t multipliers_row;
  GraphReport* report;  // for the pivot's own columns, which fill in the multipliers; else null
  int64_t first;
  double tolerance;
  void* source;
  int64_t source_row, source_col;
  int32_t* source_pred;
  int64_t source_pred_row, source_pred_col;
  int64_t cols;
};
using PanelSteps = void (*)(const PanelCall&);

}  // namespace tropical::cpu
