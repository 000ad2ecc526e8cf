// The custom calls of tropical_gemm.jax: jax.cpp, or no_jax.cpp in a build without XLA's headers.
#pragma once
#include <nanobind/nanobind.h>

namespace tropical::python {

// ((major, minor) of XLA's interface, [(target, platform, handler), ...]), or None.
nanobind::object jax_custom_calls();

}  // namespace tropical::python
