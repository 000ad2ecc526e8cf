// Arrays of the caller as DLTensors, without copying, and new arrays for results.
#pragma once
#include <nanobind/nanobind.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "import.h"
#include "library.h"
#include "tropical_gemm/cuda.h"
#include "tropical_gemm/dlpack.h"
#include "tropical_gemm/dtype.h"

namespace tropical::python {

// What the extension looks up once: importing and attribute look-ups would dominate a small product.
struct NumPy {
  nb::object ndarray, empty;
  std::array<nb::object, 8> dtypes;  // by DType; bfloat16 is not NumPy's own and stays empty
};
const NumPy& numpy();

class DeviceArray;

// A NumPy array read by the buffer protocol (so read-only and broadcast views are welcome), an array of a library that
// is read by its attributes, or any other array by DLPack: the array itself or its capsule. Holds the memory until
// destroyed, which needs the GIL.
class Array {
 public:
  // A producer on a GPU makes its data ready for work on `stream`; without one, for the legacy default stream.
  Array(nb::handle object, const char* name, Access access, std::optional<intptr_t> stream);
  // A new row-major array of the kind and on the device of `like`.
  Array(const std::vector<int64_t>& shape, const DLDataType& dtype, const Array& like, std::optional<intptr_t> stream);
  ~Array();
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  const DLTensor& tensor() const { return reading_.tensor; }
  bool is_numpy() const { return view_.obj != nullptr; }
  const Library* library() const { return library_; }
  bool on_cuda() const {
    return tensor().device.device_type == kDLCUDA || tensor().device.device_type == kDLCUDAManaged;
  }
  nb::handle object() const { return object_; }

  // Work that uses the memory was enqueued: what a DLPack producer lent is kept until that work is done, and an array
  // of ours is filled by it.
  void keep_until_done(void* stream);

 private:
  void read_buffer(const char* name, Access access);
  void read_dlpack(const char* name, Access access, std::optional<intptr_t> stream);
  void take_capsule(nb::handle capsule, const char* name, Access access);
  void make_on_device(const std::vector<int64_t>& shape, int device, std::optional<intptr_t> stream);
  void make_on_host(const std::vector<int64_t>& shape);

  nb::object object_;
  const Library* library_ = nullptr;
  Reading reading_;
  Py_buffer view_{};
  std::optional<Import> import_;
  const DeviceArray* made_ = nullptr;  // object_, where it is memory of ours on a GPU
};

// Where a call on arrays like `like` runs: the caller's stream or the library's current one, with scratch memory from
// the library's allocator. Lives until the call is over.
class Placement {
 public:
  Placement(const Array& like, std::optional<intptr_t> stream) : like_(like), stream_(stream) {}
  Placement(const Placement&) = delete;
  Placement& operator=(const Placement&) = delete;

  CudaOptions options();

 private:
  void* allocate(size_t bytes);

  const Array& like_;
  std::optional<intptr_t> stream_;
  nb::object workspace_;
};

}  // namespace tropical::python
