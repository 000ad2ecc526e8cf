// The rules of a call whose arrays are known by shape and dtype alone, as those of traced functions are.
#pragma once
#include <nanobind/nanobind.h>

namespace tropical::python {

void bind_shapes(nanobind::module_& m);

}  // namespace tropical::python
