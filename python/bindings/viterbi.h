// The Viterbi recurrence for Python.
#pragma once
#include <nanobind/nanobind.h>

namespace tropical::python {

void bind_viterbi(nanobind::module_& m);

}  // namespace tropical::python
