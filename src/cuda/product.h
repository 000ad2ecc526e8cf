// One product on one device, for each (semiring, element type), and one step of a closure, for each element type;
// defined in product.cuh, gradient.cuh and closure.cuh, instantiated in the generated kernel files.
#pragma once
#include "call.h"

namespace tropical::cuda {

template <class S, class In>
void product(const MatmulParams& params, Call& call);

template <class S, class In>
void gradient(const BackwardParams& params, Call& call);

template <class T>
void closure_step(const GraphParams& params, const Target& target);

}  // namespace tropical::cuda
