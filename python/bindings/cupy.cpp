// CuPy arrays.
#include "library.h"
#include "tropical_gemm/matmul.h"
#include "tropical_gemm/tensor_view.h"

namespace tropical::python {
namespace {

class CuPy final : public Library {
 public:
  explicit CuPy(const nb::object& cupy)
      : ndarray_(cupy.attr("ndarray")),
        empty_(cupy.attr("empty")),
        device_(cupy.attr("cuda").attr("Device")),
        current_(cupy.attr("cuda").attr("get_current_stream")) {}

  bool owns(nb::handle array) const {
    return PyObject_TypeCheck(array.ptr(), reinterpret_cast<PyTypeObject*>(ndarray_.ptr()));
  }

  nb::object read(nb::handle array, const char* name, Access, Reading& reading) const override {
    DLTensor& t = reading.tensor;
    const nb::object memory = array.attr("data");
    t.data = reinterpret_cast<void*>(nb::cast<uintptr_t>(memory.attr("ptr")));
    t.device = {kDLCUDA, nb::cast<int32_t>(memory.attr("device_id"))};
    t.dtype = dtype_of(array, name);
    const nb::tuple sizes(array.attr("shape")), steps(array.attr("strides"));
    const auto item = nb::cast<int64_t>(array.attr("itemsize"));
    t.ndim = static_cast<int32_t>(sizes.size());
    t.shape = reading.shape;
    t.strides = reading.strides;
    for (size_t d = 0; d < sizes.size(); ++d) {
      reading.shape[d] = nb::cast<int64_t>(sizes[d]);
      const auto bytes = nb::cast<int64_t>(steps[d]);
      if (reading.shape[d] > 1 && bytes % item)
        bad_value(std::string(name) + " has a stride of " + std::to_string(bytes) + " bytes in axis " +
                  std::to_string(d) + ", not a multiple of its element size of " + std::to_string(item) +
                  " bytes; pass a copy");
      reading.strides[d] = bytes / item;
    }
    return nb::borrow(array);
  }

  nb::object empty(const std::vector<int64_t>& sizes, const DLDataType& dtype, nb::handle like, const DLDevice& device,
                   Reading& reading) const override {
    nb::list size;
    for (const int64_t n : sizes) size.append(n);
    const nb::object type = dtype.code == kDLBfloat ? nb::object(like.attr("dtype"))
                            : dtype.code == kDLUInt ? nb::object(nb::str("uint8"))
                                                    : nb::object(nb::str(dtype_name(tropical::dtype_of(dtype, "a"))));
    // CuPy allocates on the current device.
    const nb::object context = device_(device.device_id);
    context.attr("__enter__")();
    nb::object made;
    try {
      made = empty_(nb::tuple(size), type);
    } catch (...) {
      context.attr("__exit__")();
      throw;
    }
    context.attr("__exit__")();
    reading.tensor.device = device;
    reading.tensor.dtype = dtype;
    reading.compact(sizes);
    reading.tensor.data = reinterpret_cast<void*>(nb::cast<uintptr_t>(made.attr("data").attr("ptr")));
    return made;
  }

  void* current_stream(int device) const override {
    return reinterpret_cast<void*>(nb::cast<uintptr_t>(current_(device).attr("ptr")));
  }

  int threads() const override { return 0; }

 private:
  static DLDataType dtype_of(nb::handle array, const char* name) {
    const std::string text = text_of(array.attr("dtype"));
    DLDataType found{};
    [&]<class... T>(TypeList<T...>) {
      ((text == TypeInfo<T>::kName ? void(found = dlpack_dtype<T>()) : void()), ...);
    }(AllTypes{});
    if (found.lanes == 0) bad_dtype(text, name);
    return found;
  }

  nb::object ndarray_, empty_, device_, current_;
};

}  // namespace

const Library* cupy_library(nb::handle array) {
  static const CuPy* known = nullptr;  // never destroyed: the interpreter may be gone by then
  if (!known) {
    PyObject* cupy = PyDict_GetItemString(PyImport_GetModuleDict(), "cupy");
    if (!cupy || !PyObject_HasAttrString(cupy, "ndarray")) return nullptr;
    if (!PyObject_IsInstance(array.ptr(), nb::handle(cupy).attr("ndarray").ptr())) return nullptr;
    known = new CuPy(nb::borrow(cupy));
  }
  return known->owns(array) ? known : nullptr;
}

}  // namespace tropical::python
