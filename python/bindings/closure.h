// Closures and shortest paths in the extension module.
#pragma once
#include <nanobind/nanobind.h>

namespace tropical::python {

void bind_closure(nanobind::module_& m);

}  // namespace tropical::python
