#include "shapes.h"

#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "arguments.h"
#include "library.h"
#include "tropical_gemm/matmul.h"
#include "tropical_gemm/tensor_view.h"

namespace tropical::python {
namespace {

// A tensor from its (shape, dtype); its memory is never looked at.
class Described {
 public:
  Described(nb::handle shape_and_dtype, const char* name) {
    alignas(8) static char nothing[8];
    const auto shape = nb::cast<std::vector<int64_t>>(shape_and_dtype[0]);
    const std::string dtype = text_of(shape_and_dtype[1]);
    DLTensor& t = reading_.tensor;
    [&]<class... T>(TypeList<T...>) {
      ((dtype == TypeInfo<T>::kName ? void(t.dtype = dlpack_dtype<T>()) : void()), ...);
    }(AllTypes{});
    if (t.dtype.lanes == 0) bad_dtype(dtype, name);
    if (shape.size() > Reading::kMaxDims)
      bad_value(std::string(name) + " has " + std::to_string(shape.size()) + " dimensions, more than any array here");
    t.data = nothing;
    t.device = {kDLCPU, 0};
    reading_.compact(shape);
  }
  const DLTensor& operator*() const { return reading_.tensor; }

 private:
  Reading reading_;
};

nb::tuple product_shape(nb::handle a, nb::handle b, nb::handle semiring, bool argmax, nb::handle argmax_offset,
                        nb::handle threads) {
  const Semiring s = semiring_of(semiring);
  MatmulOptions options;
  options.argmax_offset = integer_of(argmax_offset, "argmax_offset", "an int");
  options.threads = threads_of(threads);
  const Described x(a, "a"), y(b, "b");
  return nb::tuple(nb::cast(matmul_shape(s, *x, *y, argmax, options)));
}

void check_backward(nb::handle grad_c, nb::handle argmax, nb::handle a, nb::handle b, nb::handle semiring,
                    nb::handle threads) {
  const Semiring s = semiring_of(semiring);
  const int count = threads_of(threads);
  const Described g(grad_c, "grad_c"), arg(argmax, "argmax"), x(a, "a"), y(b, "b");
  matmul_backward(s, *g, *arg, *x, *y, nullptr, nullptr, count);  // with no gradient to write it only checks
}

}  // namespace

void bind_shapes(nb::module_& m) {
  const nb::arg any;
  const auto none = nb::arg().none();
  m.def("product_shape", &product_shape, any, any, none, any, none, none,
        nb::sig("def product_shape(a: tuple[tuple[int, ...], str], b: tuple[tuple[int, ...], str], semiring: object, "
                "argmax: bool, argmax_offset: object, threads: object, /) -> tuple[int, ...]"));
  m.def("check_backward", &check_backward, any, any, any, any, none, none,
        nb::sig("def check_backward(grad_c: tuple[tuple[int, ...], str], argmax: tuple[tuple[int, ...], str], "
                "a: tuple[tuple[int, ...], str], b: tuple[tuple[int, ...], str], semiring: object, threads: object, /) "
                "-> None"));
}

}  // namespace tropical::python
