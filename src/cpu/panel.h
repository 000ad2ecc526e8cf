// The rows of a pivot, closed over its nodes: Floyd-Warshall, column by column of the other nodes.
#pragma once
#include "params.h"

namespace tropical::cpu {

void close_panel(const GraphParams& params);

}  // namespace tropical::cpu
