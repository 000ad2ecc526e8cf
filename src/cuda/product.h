// One product or gradient on one device, for each (semiring, element type), defined in product.cuh and gradient.cuh and
// instantiated in the generated kernel files; and what is built on products, for each element type; and copies.
#pragma once
#include "call.h"

namespace tropical::cuda {

template <class S, class In>
void product(const MatmulParams& params, Call& call);

template <class S, class In>
void gradient(const BackwardParams& params, Call& call);

template <class In>
void count_product(const CountParams& params, Call& call);

void permute(const PermuteParams& params, const Target& target);

template <class In>
void viterbi(const ViterbiParams& params, Call& call);

template <class In>
void align(const AlignParams& params, Call& call);

template <class T>
void closure_step(const GraphParams& params, const Target& target);

}  // namespace tropical::cuda
