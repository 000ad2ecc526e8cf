// PyTorch tensors, on the CPU and on CUDA devices.
#include <array>

#include "library.h"
#include "tropical_gemm/matmul.h"
#include "tropical_gemm/tensor_view.h"

namespace tropical::python {
namespace {

nb::object interned(const char* text) { return nb::steal(PyUnicode_InternFromString(text)); }

// The attributes that are read.
struct Names {
  nb::object layout = interned("layout");
  nb::object requires_grad = interned("requires_grad");
  nb::object is_neg = interned("is_neg");
  nb::object resolve_neg = interned("resolve_neg");
  nb::object is_cuda = interned("is_cuda");
  nb::object is_cpu = interned("is_cpu");
  nb::object get_device = interned("get_device");
  nb::object device = interned("device");
  nb::object dtype = interned("dtype");
  nb::object shape = interned("shape");
  nb::object stride = interned("stride");
  nb::object data_ptr = interned("data_ptr");
};

nb::object attribute(nb::handle object, const nb::object& name) {
  PyObject* value = PyObject_GetAttr(object.ptr(), name.ptr());
  if (!value) throw nb::python_error();
  return nb::steal(value);
}
nb::object called(nb::handle object, const nb::object& name) {
  PyObject* value = PyObject_CallMethodNoArgs(object.ptr(), name.ptr());
  if (!value) throw nb::python_error();
  return nb::steal(value);
}
int64_t integer(nb::handle object) {
  const int64_t value = PyLong_AsLongLong(object.ptr());
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

// Fills `to` from a tuple of ints.
void integers(const nb::object& tuple, int64_t* to) {
  for (Py_ssize_t d = 0; d < PyTuple_GET_SIZE(tuple.ptr()); ++d) to[d] = integer(PyTuple_GET_ITEM(tuple.ptr(), d));
}

class Torch final : public Library {
 public:
  explicit Torch(const nb::object& torch)
      : tensor_(torch.attr("Tensor")),
        empty_(torch.attr("empty")),
        strided_(torch.attr("strided")),
        uint8_(torch.attr("uint8")),
        is_grad_enabled_(torch.attr("is_grad_enabled")),
        get_num_threads_(torch.attr("get_num_threads")),
        empty_keywords_(nb::make_tuple("dtype", "device")),
        on_rocm_(!torch.attr("version").attr("hip").is_none()) {
    const nb::object c = torch.attr("_C");
    if (nb::hasattr(c, "_cuda_getCurrentRawStream")) raw_stream_ = c.attr("_cuda_getCurrentRawStream");
    const auto add = [&]<class T>() {
      dtypes_[static_cast<size_t>(TypeInfo<T>::kId)] = torch.attr(TypeInfo<T>::kName);
    };
    [&]<class... T>(TypeList<T...>) { (add.template operator()<T>(), ...); }(AllTypes{});
  }

  bool owns(nb::handle array) const {
    return PyObject_TypeCheck(array.ptr(), reinterpret_cast<PyTypeObject*>(tensor_.ptr()));
  }

  nb::object read(nb::handle array, const char* name, Access access, Reading& reading) const override {
    nb::object x = nb::borrow(array);
    if (attribute(x, names_.layout).ptr() != strided_.ptr())
      throw Error(ErrorCode::invalid_type, std::string(name) + " is a torch.Tensor of layout " +
                                               text_of(attribute(x, names_.layout)) + ", expected torch.strided");
    check_gradient(x, name);
    if (called(x, names_.is_neg).ptr() == Py_True) {
      if (access == Access::write) bad_value(std::string(name) + " is a lazily negated view, expected a plain tensor");
      x = called(x, names_.resolve_neg);
    }
    DLTensor& t = reading.tensor;
    t.device = device_of(x, name);
    t.dtype = dtype_of(x, name);
    const nb::object sizes = shape_of(x, name), steps = called(x, names_.stride);
    t.ndim = static_cast<int32_t>(PyTuple_GET_SIZE(sizes.ptr()));
    if (t.ndim > Reading::kMaxDims)
      bad_value(std::string(name) + " has " + std::to_string(t.ndim) + " dimensions, more than any array here");
    integers(sizes, reading.shape);
    integers(steps, reading.strides);
    t.shape = reading.shape;
    t.strides = reading.strides;
    t.data = pointer(x);
    return x;
  }

  nb::object empty(const std::vector<int64_t>& sizes, const DLDataType& dtype, nb::handle like, const DLDevice& device,
                   Reading& reading) const override {
    nb::object size = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(sizes.size())));
    for (size_t d = 0; d < sizes.size(); ++d)
      PyTuple_SET_ITEM(size.ptr(), static_cast<Py_ssize_t>(d), PyLong_FromLongLong(sizes[d]));
    const nb::object place = attribute(like, names_.device);
    const nb::object& type =
        dtype.code == kDLUInt ? uint8_ : dtypes_[static_cast<size_t>(tropical::dtype_of(dtype, "a"))];
    PyObject* args[] = {size.ptr(), type.ptr(), place.ptr()};
    PyObject* made = PyObject_Vectorcall(empty_.ptr(), args, 1, empty_keywords_.ptr());
    if (!made) throw nb::python_error();
    nb::object x = nb::steal(made);
    reading.tensor.device = device;
    reading.tensor.dtype = dtype;
    reading.compact(sizes);
    reading.tensor.data = pointer(x);
    return x;
  }

  void* current_stream(int device) const override { return reinterpret_cast<void*>(integer(raw_stream_(device))); }

  int threads() const override { return static_cast<int>(integer(get_num_threads_())); }

 private:
  // What is computed here is no part of torch's graph: a gradient would be lost without a word.
  void check_gradient(const nb::object& x, const char* name) const {
    if (attribute(x, names_.requires_grad).ptr() != Py_True || is_grad_enabled_().ptr() != Py_True) return;
    throw Error(ErrorCode::unsupported, std::string(name) +
                                            " requires grad, and this function records no gradient; use "
                                            "tropical_gemm.torch.matmul, or pass " +
                                            name + ".detach()");
  }

  nb::object shape_of(const nb::object& x, const char* name) const {
    PyObject* shape = PyObject_GetAttr(x.ptr(), names_.shape.ptr());
    if (shape) return nb::steal(shape);
    const nb::python_error raised;
    if (nb::cast<bool>(x.attr("is_nested")))
      throw Error(
          ErrorCode::invalid_type,
          std::string(name) + " is a nested tensor, expected one of a single shape; pad it, or multiply its parts");
    throw raised;
  }

  DLDevice device_of(const nb::object& x, const char* name) const {
    if (attribute(x, names_.is_cuda).ptr() == Py_True)
      return {on_rocm_ ? kDLROCM : kDLCUDA, static_cast<int32_t>(integer(called(x, names_.get_device)))};
    if (attribute(x, names_.is_cpu).ptr() == Py_True) return {kDLCPU, 0};
    throw Error(ErrorCode::unsupported, std::string(name) + " is on the device " +
                                            text_of(attribute(x, names_.device)) +
                                            ", expected host memory or a CUDA device");
  }

  DLDataType dtype_of(const nb::object& x, const char* name) const {
    const nb::object type = attribute(x, names_.dtype);
    DLDataType found{};
    [&]<class... T>(TypeList<T...>) {
      ((dtypes_[static_cast<size_t>(TypeInfo<T>::kId)].ptr() == type.ptr() ? void(found = dlpack_dtype<T>()) : void()),
       ...);
    }(AllTypes{});
    if (found.lanes == 0) {
      const std::string text = text_of(type);
      bad_dtype(text.starts_with("torch.") ? text.substr(6) : text, name);
    }
    return found;
  }

  void* pointer(const nb::object& x) const { return PyLong_AsVoidPtr(called(x, names_.data_ptr).ptr()); }

  nb::object tensor_, empty_, strided_, uint8_, is_grad_enabled_, get_num_threads_, empty_keywords_, raw_stream_;
  std::array<nb::object, 8> dtypes_;  // by DType
  bool on_rocm_;
  const Names names_;
};

}  // namespace

const Library* torch_library(nb::handle array) {
  static const Torch* known = nullptr;  // never destroyed: the interpreter may be gone by then
  if (!known) {
    PyObject* torch = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
    // While torch is being imported it has no tensors yet.
    if (!torch || !PyObject_HasAttrString(torch, "Tensor")) return nullptr;
    if (!PyObject_IsInstance(array.ptr(), nb::handle(torch).attr("Tensor").ptr())) return nullptr;
    known = new Torch(nb::borrow(torch));
  }
  return known->owns(array) ? known : nullptr;
}

}  // namespace tropical::python
