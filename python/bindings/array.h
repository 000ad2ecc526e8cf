// Arrays of the caller as DLTensors, without copying, and new arrays for results.
#pragma once
#include <nanobind/nanobind.h>

#include <array>
#include <string>
#include <vector>

#include "tropical_gemm/dlpack.h"
#include "tropical_gemm/dtype.h"

namespace tropical::python {

namespace nb = nanobind;

enum class Access { read, write };

// What the extension looks up once: importing and attribute look-ups would dominate a small product.
struct NumPy {
  nb::object ndarray, empty;
  std::array<nb::object, 8> dtypes;  // by DType; bfloat16 is not NumPy's own and stays empty
};
const NumPy& numpy();

// A NumPy array read by the buffer protocol (so read-only and broadcast views are welcome), or any other array
// on the host by DLPack: the array itself or its capsule. Holds the memory until destroyed, which needs the GIL.
class Array {
 public:
  Array(nb::handle object, const char* name, Access access);
  ~Array();
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  const DLTensor& tensor() const { return tensor_; }
  bool is_numpy() const { return view_.obj != nullptr; }
  nb::handle object() const { return object_; }

 private:
  void read_buffer(const char* name, Access access);
  void read_dlpack(const char* name, Access access);
  void take_capsule(nb::handle capsule, const char* name, Access access);

  // NumPy's limit on dimensions; tensor_.strides of a buffer point here.
  static constexpr int kMaxDims = 64;

  nb::handle object_;
  DLTensor tensor_{};
  Py_buffer view_{};
  int64_t strides_[kMaxDims];
  DLManagedTensor* legacy_ = nullptr;
  DLManagedTensorVersioned* versioned_ = nullptr;
};

// A new row-major array: NumPy's where `like` is one; otherwise one that other libraries take by DLPack.
nb::object new_array(const std::vector<int64_t>& shape, const DLDataType& dtype, const Array& like);

// "float32, float64, ...": the element types there are.
std::string dtype_list();

}  // namespace tropical::python
