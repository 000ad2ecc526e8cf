// The extension module tropical_gemm._core: arrays and plain values in, the C++ library called, arrays out.
// Kinds of arrays and the meaning of Python's defaults are settled in tropical_gemm/_ops.py.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "array.h"
#include "interrupt.h"
#include "tropical_gemm/matmul.h"

namespace tropical::python {
namespace {

std::string type_text(nb::handle object) { return nb::cast<std::string>(nb::str(object.type().attr("__qualname__"))); }

Semiring semiring_of(nb::handle name) {
  // Spellings seen before; a look-up by name costs more than a small product.
  static PyObject* const seen = PyDict_New();
  if (!PyUnicode_Check(name.ptr()))
    throw Error(ErrorCode::invalid_type,
                "semiring is of type " + type_text(name) + ", expected a str such as 'max_plus'");
  if (PyObject* known = PyDict_GetItemWithError(seen, name.ptr())) return static_cast<Semiring>(PyLong_AsLong(known));
  if (PyErr_Occurred()) throw nb::python_error();
  const Semiring semiring = parse_semiring(nb::cast<std::string_view>(name));
  PyDict_SetItem(seen, name.ptr(), nb::int_(static_cast<int>(semiring)).ptr());
  return semiring;
}

int64_t integer_of(nb::handle object, const char* name, const char* expected) {
  if (!PyIndex_Check(object.ptr()) || PyBool_Check(object.ptr()))
    throw Error(ErrorCode::invalid_type,
                std::string(name) + " is of type " + type_text(object) + ", expected " + expected);
  const Py_ssize_t value = PyNumber_AsSsize_t(object.ptr(), nullptr);  // clips what does not fit
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

// None: as many as OpenMP would use.
int threads_of(nb::handle object) {
  if (object.is_none()) return 0;
  const int64_t threads = integer_of(object, "threads", "None or a positive int");
  if (threads < 1 || threads > std::numeric_limits<int>::max())
    throw Error(ErrorCode::invalid_value,
                "threads is " + std::to_string(threads) + ", expected None or a positive int");
  return static_cast<int>(threads);
}

// An array to write: `wanted` itself, a new one where it is True, none where it is False.
class Output {
 public:
  Output(nb::handle wanted, const char* name, const std::vector<int64_t>& shape, const DLDataType& dtype,
         const Array& like)
      : made_(wanted.ptr() == Py_True) {
    if (wanted.ptr() == Py_False) return;
    object_ = made_ ? new_array(shape, dtype, like) : nb::borrow(wanted);
    array_.emplace(object_, name, Access::write);
  }
  const DLTensor* tensor() const { return array_ ? &array_->tensor() : nullptr; }

  // What the caller gets: as with numpy.matmul, a scalar where NumPy's new array has no axes.
  nb::object result() const {
    if (!array_) return nb::none();
    if (made_ && array_->is_numpy() && array_->tensor().ndim == 0)
      return nb::steal(PyObject_GetItem(object_.ptr(), nb::tuple().ptr()));
    return object_;
  }

 private:
  bool made_;
  nb::object object_;
  std::optional<Array> array_;
};

nb::object matmul_arrays(nb::handle a, nb::handle b, nb::handle out, nb::handle argmax, nb::handle semiring,
                         bool accumulate, nb::handle argmax_offset, nb::handle threads) {
  const Semiring s = semiring_of(semiring);
  MatmulOptions options;
  options.accumulate = accumulate;
  options.argmax_offset = integer_of(argmax_offset, "argmax_offset", "an int");
  options.threads = threads_of(threads);
  const Array x(a, "a", Access::read), y(b, "b", Access::read);
  const std::vector<int64_t> shape = matmul_shape(x.tensor(), y.tensor());
  const Output c(out, "out", shape, x.tensor().dtype, x);
  const Output arg(argmax, "argmax", shape, dlpack_dtype<int32_t>(), x);
  run_interruptible(work_on_cpu(x.tensor(), shape), options,
                    [&](const MatmulOptions& o) { matmul(s, x.tensor(), y.tensor(), *c.tensor(), arg.tensor(), o); });
  return arg.tensor() ? nb::make_tuple(c.result(), arg.result()) : c.result();
}

nb::object matmul_backward_arrays(nb::handle grad_c, nb::handle argmax, nb::handle a, nb::handle b, nb::handle grad_a,
                                  nb::handle grad_b, nb::handle semiring, nb::handle threads) {
  const Semiring s = semiring_of(semiring);
  const int count = threads_of(threads);
  const Array g(grad_c, "grad_c", Access::read), arg(argmax, "argmax", Access::read);
  const Array x(a, "a", Access::read), y(b, "b", Access::read);
  const auto gradient = [](nb::handle wanted, const char* name, const Array& of) {
    const DLTensor& t = of.tensor();
    return Output(wanted, name, {t.shape, t.shape + t.ndim}, t.dtype, of);
  };
  const Output ga = gradient(grad_a, "grad_a", x), gb = gradient(grad_b, "grad_b", y);
  {
    nb::gil_scoped_release release;
    matmul_backward(s, g.tensor(), arg.tensor(), x.tensor(), y.tensor(), ga.tensor(), gb.tensor(), count);
  }
  return nb::make_tuple(ga.result(), gb.result());
}

nb::tuple shape_of_product(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  // Only the shapes are looked at; the pointer has to be there and aligned.
  alignas(8) static char somewhere[8];
  const auto described = [](const std::vector<int64_t>& shape) {
    DLTensor t{};
    t.data = somewhere;
    t.device = {kDLCPU, 0};
    t.ndim = static_cast<int32_t>(shape.size());
    t.dtype = dlpack_dtype<float>();
    t.shape = const_cast<int64_t*>(shape.data());
    return t;
  };
  return nb::tuple(nb::cast(matmul_shape(described(a), described(b))));
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
    PyErr_SetString(type, error.what());
  }
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The compiled part of tropical_gemm; private.";
  nb::register_exception_translator(translate);
  numpy();
  // At most eight arguments, by position only and without defaults: a fast call in nanobind. None comes through
  // where this code has a text of its own for it.
  const nb::arg any;
  const auto none = nb::arg().none();
  m.def("matmul", &matmul_arrays, any, any, any, any, none, any, none, none,
        nb::sig("def matmul(a: object, b: object, out: object, argmax: object, semiring: object, accumulate: bool, "
                "argmax_offset: object, threads: object, /) -> typing.Any"));
  m.def("matmul_backward", &matmul_backward_arrays, any, any, any, any, any, any, none, none,
        nb::sig("def matmul_backward(grad_c: object, argmax: object, a: object, b: object, grad_a: object, "
                "grad_b: object, semiring: object, threads: object, /) -> tuple[typing.Any, typing.Any]"));
  m.def("matmul_shape", &shape_of_product,
        nb::sig("def matmul_shape(a: typing.Sequence[int], b: typing.Sequence[int], /) -> tuple[int, ...]"));
  m.def("info", &facts, nb::sig("def info() -> dict[str, typing.Any]"));
  m.def("set_isa", &set_isa, nb::sig("def set_isa(isa: str, /) -> None"));
}

}  // namespace tropical::python
