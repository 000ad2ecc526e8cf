// One product on one device, for each (semiring, element type); defined in product.cuh and gradient.cuh, instantiated
// in the generated kernel files.
#pragma once
#include "call.h"

namespace tropical::cuda {

template <class S, class In>
void product(const MatmulParams& params, Call& call);

template <class S, class In>
void gradient(const BackwardParams& params, Call& call);

}  // namespace tropical::cuda
