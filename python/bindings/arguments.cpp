#include "arguments.h"

#include <limits>

namespace tropical::python {
namespace {

std::string type_text(nb::handle object) { return text_of(object.type().attr("__qualname__")); }

}  // namespace

Semiring semiring_of(nb::handle name) {
  // Spellings seen before; a look-up by name costs more than a small product.
  static PyObject* const seen = PyDict_New();
  if (!PyUnicode_Check(name.ptr()))
    throw Error(ErrorCode::invalid_type,
                "semiring is of type " + type_text(name) + ", expected a str such as 'max_plus'");
  if (PyObject* known = PyDict_GetItemWithError(seen, name.ptr())) return static_cast<Semiring>(PyLong_AsLong(known));
  if (PyErr_Occurred()) throw nb::python_error();
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
  if (!text) throw nb::python_error();  // lone surrogates: a ValueError of Python's
  const Semiring semiring = parse_semiring({text, static_cast<size_t>(size)});
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

int threads_of(nb::handle object) {
  if (object.is_none()) return 0;
  const int64_t threads = integer_of(object, "threads", "None or a positive int");
  if (threads < 1 || threads > std::numeric_limits<int>::max())
    throw Error(ErrorCode::invalid_value, "threads is " + text_of(object) + ", expected None or a positive int");
  return static_cast<int>(threads);
}

int threads_of(nb::handle object, const Array& like) {
  const bool library_says = object.is_none() && like.library() && !like.on_cuda();
  return library_says ? like.library()->threads() : threads_of(object);
}

Stream stream_of(nb::handle object) {
  if (object.is_none()) return std::nullopt;
  return nb::cast<intptr_t>(object);
}

Output::Output(nb::handle wanted, const char* name, const std::vector<int64_t>& shape, const DLDataType& dtype,
               const Array& like, const Stream& stream)
    : made_(wanted.ptr() == Py_True) {
  if (wanted.ptr() == Py_False) return;
  if (made_)
    array_.emplace(shape, dtype, like, stream);
  else
    array_.emplace(wanted, name, Access::write, stream);
}

nb::object Output::result() const {
  if (!array_) return nb::none();
  if (made_ && array_->is_numpy() && array_->tensor().ndim == 0)
    return nb::steal(PyObject_GetItem(array_->object().ptr(), nb::tuple().ptr()));
  return nb::borrow(array_->object());
}

}  // namespace tropical::python
