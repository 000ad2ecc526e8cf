// The CPU backend: validated params in, results in memory.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "params.h"

namespace tropical::cpu {

// Below this many candidates of a product, threads cost more than they bring.
inline constexpr double kProductThreadWork = 1 << 18;

void matmul(const MatmulParams& params);
void matmul_backward(const BackwardParams& params);
void count_matmul(const CountParams& params);
void permute(const PermuteParams& params);
void viterbi(const ViterbiParams& params);
void align(const AlignParams& params);
void graph_step(const GraphParams& params);

std::string isa();
std::vector<std::string> isas();
void set_isa(std::string_view isa);
// The element types that certified filtering is offered for.
std::vector<DType> filtered_types();

}  // namespace tropical::cpu
