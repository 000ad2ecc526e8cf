// The rows of a pivot, closed over its nodes: Floyd-Warshall, column by column of the other nodes.
#pragma once
#include "params.h"

namespace tropical::cpu {

void close_panel(const GraphParams& params);

// pred[j] = limit + k becomes from[k, j]; rows are contiguous.
void resolve_row(int32_t* pred, const int32_t* from, int64_t from_row, int32_t limit, int64_t n);

}  // namespace tropical::cpu
