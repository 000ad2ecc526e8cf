// The extension module tropical_gemm._core: arrays and plain values in, the C++ library called, arrays out.
// Kinds of arrays and the meaning of Python's defaults are settled in tropical_gemm/_ops.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "array.h"
#include "closure.h"
#include "device_array.h"
#include "interrupt.h"
#include "jax.h"
#include "shapes.h"
#include "tropical_gemm/matmul.h"
#include "tropical_gemm/permute.h"
#include "viterbi.h"

namespace tropical::python {
namespace {

nb::object matmul_arrays(nb::handle a, nb::handle b, nb::handle outputs, nb::handle semiring, bool accumulate,
                         nb::handle argmax_offset, nb::handle threads, nb::handle stream) {
  const Semiring s = semiring_of(semiring);
  MatmulOptions options;
  options.accumulate = accumulate;
  options.argmax_offset = integer_of(argmax_offset, "argmax_offset", "an int");
  const Stream on = stream_of(stream);
  Array x(a, "a", Access::read, on), y(b, "b", Access::read, on);
  const std::vector<int64_t> shape = matmul_shape(s, x.tensor(), y.tensor());
  Output c(outputs[0], "out", shape, x.tensor().dtype, x, on);
  Output arg(outputs[1], "argmax", shape, dlpack_dtype<int32_t>(), x, on);
  Placement place(x, on);
  options.cuda = place.options();
  options.threads = threads_of(threads, x);
  run_interruptible(product_work(x.tensor(), shape), watched_work(x.tensor().dtype), options,
                    [&](const MatmulOptions& o) { matmul(s, x.tensor(), y.tensor(), *c.tensor(), arg.tensor(), o); });
  x.keep_until_done(options.cuda.stream), y.keep_until_done(options.cuda.stream);
  c.keep_until_done(options.cuda.stream), arg.keep_until_done(options.cuda.stream);
  return arg.tensor() ? nb::make_tuple(c.result(), arg.result()) : c.result();
}

nb::object matmul_backward_arrays(nb::handle grad_c, nb::handle argmax, nb::handle a, nb::handle b, nb::handle outputs,
                                  nb::handle semiring, nb::handle threads, nb::handle stream) {
  const Semiring s = semiring_of(semiring);
  MatmulOptions options;
  const Stream on = stream_of(stream);
  Array g(grad_c, "grad_c", Access::read, on), arg(argmax, "argmax", Access::read, on);
  Array x(a, "a", Access::read, on), y(b, "b", Access::read, on);
  const std::vector<int64_t> shape = matmul_shape(s, x.tensor(), y.tensor());  // before anything is made
  const auto gradient = [&](nb::handle wanted, const char* name, const Array& of) {
    const DLTensor& t = of.tensor();
    return Output(wanted, name, {t.shape, t.shape + t.ndim}, t.dtype, of, on);
  };
  Output ga = gradient(outputs[0], "grad_a", x), gb = gradient(outputs[1], "grad_b", y);
  Placement place(x, on);
  options.cuda = place.options();
  options.threads = threads_of(threads, x);
  run_interruptible(work_on_cpu(x.tensor(), shape, 0), watched_work(x.tensor().dtype), options,
                    [&](const MatmulOptions& o) {
                      matmul_backward(s, g.tensor(), arg.tensor(), x.tensor(), y.tensor(), ga.tensor(), gb.tensor(),
                                      o.threads, o.cuda, o.cancel);
                    });
  for (Array* read : {&g, &arg, &x, &y}) read->keep_until_done(options.cuda.stream);
  ga.keep_until_done(options.cuda.stream), gb.keep_until_done(options.cuda.stream);
  return nb::make_tuple(ga.result(), gb.result());
}

std::string canonical_semiring(nb::handle name) { return semiring_name(semiring_of(name)); }

nb::tuple count_arrays(nb::handle a, nb::handle a_counts, nb::handle b, nb::handle b_counts, nb::handle semiring,
                       nb::handle threads, nb::handle stream) {
  const Semiring s = semiring_of(semiring);
  MatmulOptions options;
  const Stream on = stream_of(stream);
  Array x(a, "a", Access::read, on), y(b, "b", Access::read, on);
  std::optional<Array> xc, yc;
  if (!a_counts.is_none()) xc.emplace(a_counts, "a_counts", Access::read, on);
  if (!b_counts.is_none()) yc.emplace(b_counts, "b_counts", Access::read, on);
  const std::vector<int64_t> shape = matmul_shape(s, x.tensor(), y.tensor());
  const DLDataType counted = xc ? xc->tensor().dtype : yc ? yc->tensor().dtype : dlpack_dtype<double>();
  const nb::bool_ made(true);
  Output c(made, "out", shape, x.tensor().dtype, x, on), counts(made, "out_counts", shape, counted, x, on);
  Placement place(x, on);
  options.cuda = place.options();
  options.threads = threads_of(threads, x);
  run_interruptible(product_work(x.tensor(), shape), watched_work(x.tensor().dtype) / 64, options,
                    [&](const MatmulOptions& o) {
                      count_matmul(s, x.tensor(), xc ? &xc->tensor() : nullptr, y.tensor(),
                                   yc ? &yc->tensor() : nullptr, *c.tensor(), *counts.tensor(), o);
                    });
  for (Array* read : {&x, &y}) read->keep_until_done(options.cuda.stream);
  for (std::optional<Array>* read : {&xc, &yc})
    if (*read) (*read)->keep_until_done(options.cuda.stream);
  c.keep_until_done(options.cuda.stream), counts.keep_until_done(options.cuda.stream);
  return nb::make_tuple(c.result(), counts.result());
}

nb::object permuted_array(nb::handle x, const std::vector<int>& axes, nb::handle threads, nb::handle stream) {
  PermuteOptions options;
  const Stream on = stream_of(stream);
  Array from(x, "x", Access::read, on);
  std::vector<int64_t> shape;
  for (const int axis : axes) shape.push_back(axis >= 0 && axis < from.tensor().ndim ? from.tensor().shape[axis] : 0);
  Output to(nb::bool_(true), "out", shape, from.tensor().dtype, from, on);
  Placement place(from, on);
  options.cuda = place.options();
  options.threads = threads_of(threads, from);
  run_interruptible(work_on_cpu(from.tensor(), shape, 0), watched_work(from.tensor().dtype), options,
                    [&](const PermuteOptions& o) { permute(from.tensor(), axes, *to.tensor(), o); });
  from.keep_until_done(options.cuda.stream), to.keep_until_done(options.cuda.stream);
  return to.result();
}

// {"max_plus": ("float32", ...), ...}
nb::dict semiring_table() {
  nb::dict table;
  [&]<class... S>(TypeList<S...>) {
    const auto row = [&]<class R>() {
      nb::list names;
      [&]<class... T>(TypeList<T...>) {
        ((supported_v<R, T> ? names.append(TypeInfo<T>::kName) : void()), ...);
      }(AllTypes{});
      table[R::kName] = nb::tuple(names);
    };
    (row.template operator()<S>(), ...);
  }(AllSemirings{});
  return table;
}

// (zero, one) of a semiring on a dtype.
nb::tuple constants_of(nb::handle semiring, const std::string& dtype) {
  const Semiring wanted = semiring_of(semiring);
  nb::object found;
  const auto number = []<class T>(T x) -> nb::object {
    if constexpr (std::is_same_v<T, bool>)
      return nb::bool_(x);
    else if constexpr (is_float_v<T>)
      return nb::float_(static_cast<double>(widen(x)));
    else
      return nb::int_(static_cast<int64_t>(x));
  };
  const auto look = [&]<class S, class T>() {
    if constexpr (supported_v<S, T>)
      if (S::kId == wanted && dtype == TypeInfo<T>::kName)
        found = nb::make_tuple(number(S::template zero<T>()), number(S::template one<T>()));
  };
  const auto row = [&]<class S, class... T>(TypeList<T...>) { (look.template operator()<S, T>(), ...); };
  [&]<class... S>(TypeList<S...>) { (row.template operator()<S>(AllTypes{}), ...); }(AllSemirings{});
  if (!found.is_valid())
    throw Error(ErrorCode::invalid_type, "the operands have dtype " + dtype + ", which the semiring " +
                                             semiring_name(wanted) + " does not have");
  return nb::tuple(found);
}

nb::dict cuda_facts() {
  const CudaInfo cuda = cuda_info();
  nb::list devices;
  bool available = false;
  for (const CudaDevice& device : cuda.devices) {
    nb::dict d;
    d["name"] = device.name;
    d["compute_capability"] = nb::make_tuple(device.major, device.minor);
    d["multiprocessors"] = device.multiprocessors;
    d["memory"] = device.memory;
    d["supported"] = device.supported;
    devices.append(d);
    available |= device.supported;
  }
  nb::dict d;
  d["built"] = cuda.built;
  d["available"] = available;
  d["architectures"] = nb::str(cuda.architectures.c_str()).attr("split")();
  d["devices"] = devices;
  d["problem"] = cuda.problem;
  return d;
}

nb::dict facts() {
  const BuildInfo build = build_info();
  nb::list dtypes;
  [&]<class... T>(TypeList<T...>) { (dtypes.append(TypeInfo<T>::kName), ...); }(AllTypes{});
  nb::dict d;
  d["version"] = build.version;
  d["isa"] = build.isa;
  d["isas"] = nb::tuple(nb::cast(build.isas));
  d["threads"] = build.max_threads;
  d["dtypes"] = nb::tuple(dtypes);
  d["semirings"] = semiring_table();
  nb::dict filter;
  filter["mode"] = build.filter;
  nb::list filtered;
  for (const DType dtype : build.filtered) filtered.append(dtype_name(dtype));
  filter["dtypes"] = nb::tuple(filtered);
  d["filter"] = filter;
  return d;
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    PyObject* type = PyExc_RuntimeError;
    if (error.code() == ErrorCode::invalid_value) type = PyExc_ValueError;
    if (error.code() == ErrorCode::invalid_type) type = PyExc_TypeError;
    if (error.code() == ErrorCode::out_of_memory) type = PyExc_MemoryError;
    if (error.code() == ErrorCode::overflow) type = PyExc_OverflowError;
    PyErr_SetString(type, error.what());
  }
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The compiled part of tropical_gemm; private.";
  nb::register_exception_translator(translate);
  numpy();
  bind_device_array(m);
  bind_viterbi(m);
  // At most eight arguments, by position only and without defaults: a fast call in nanobind. None comes through
  // where this code has a text of its own for it.
  const nb::arg any;
  const auto none = nb::arg().none();
  m.def("matmul", &matmul_arrays, any, any, any, none, any, none, none, none,
        nb::sig("def matmul(a: object, b: object, outputs: tuple[object, object], semiring: object, accumulate: bool, "
                "argmax_offset: object, threads: object, stream: int | None, /) -> typing.Any"));
  m.def("matmul_backward", &matmul_backward_arrays, any, any, any, any, any, none, none, none,
        nb::sig("def matmul_backward(grad_c: object, argmax: object, a: object, b: object, "
                "outputs: tuple[object, object], semiring: object, threads: object, stream: int | None, /) -> "
                "tuple[typing.Any, typing.Any]"));
  m.def("semiring_name", &canonical_semiring, none, nb::sig("def semiring_name(semiring: object, /) -> str"));
  m.def("count_matmul", &count_arrays, any, none, any, none, any, none, none,
        nb::sig("def count_matmul(a: object, a_counts: object | None, b: object, b_counts: object | None, "
                "semiring: object, threads: object, stream: int | None, /) -> tuple[typing.Any, typing.Any]"));
  m.def(
      "permute", &permuted_array, any, any, none, none,
      nb::sig("def permute(x: object, axes: collections.abc.Sequence[int], threads: object, stream: int | None, /) -> "
              "typing.Any"));
  m.def("semiring_constants", &constants_of,
        nb::sig("def semiring_constants(semiring: object, dtype: str, /) -> tuple[typing.Any, typing.Any]"));
  bind_closure(m);
  bind_shapes(m);
  m.def("jax_custom_calls", &jax_custom_calls,
        nb::sig("def jax_custom_calls() -> tuple[tuple[int, int], list[tuple[str, str, object]]] | None"));
  m.def("cuda_info", &cuda_facts, nb::sig("def cuda_info() -> dict[str, typing.Any]"));
  m.def("info", &facts, nb::sig("def info() -> dict[str, typing.Any]"));
  m.def("set_filter", &set_filter, nb::sig("def set_filter(mode: str, /) -> None"));
  m.def(
      "last_filter",
      [] {
        const FilterReport report = last_filter();
        return nb::make_tuple(report.outputs, report.filtered, report.unproven);
      },
      nb::sig("def last_filter() -> tuple[int, int, int]"));
  m.def("record_filter", &record_filter, nb::sig("def record_filter(wanted: bool, /) -> None"));
  m.def("set_isa", &set_isa, nb::sig("def set_isa(isa: str, /) -> None"));
}

}  // namespace tropical::python
