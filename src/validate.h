// The shape, dtype and aliasing rules of the public operations, in one place: tensors in, params out.
#pragma once
#include <vector>

#include "params.h"
#include "tropical_gemm/matmul.h"

namespace tropical {

// All throw Error naming the argument, what came and what was expected.
MatmulParams validate_matmul(Semiring semiring, const DLTensor& a, const DLTensor& b, const DLTensor& c,
                             const DLTensor* argmax, const MatmulOptions& options);

CountParams validate_count(Semiring semiring, const DLTensor& a, const DLTensor* a_counts, const DLTensor& b,
                           const DLTensor* b_counts, const DLTensor& c, const DLTensor& c_counts,
                           const MatmulOptions& options);

BackwardParams validate_backward(Semiring semiring, const DLTensor& grad_c, const DLTensor& argmax, const DLTensor& a,
                                 const DLTensor& b, const DLTensor* grad_a, const DLTensor* grad_b, int threads);

// The matrices of load_graph, closure and relax: from, to, pred, m and n.
GraphParams validate_graph(Semiring semiring, const DLTensor& source, const DLTensor* to, const DLTensor* pred);
GraphParams validate_closure(Semiring semiring, const DLTensor& d, const DLTensor* pred);
GraphParams validate_paths(Semiring semiring, const std::vector<int64_t>& sources, const DLTensor& d,
                           const DLTensor* pred);
GraphParams validate_relax(Semiring semiring, const DLTensor& w, const DLTensor& d, const DLTensor* pred);

}  // namespace tropical
