// Libraries whose arrays are read by their attributes, faster than by DLPack, and whose allocators make the results.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tropical_gemm/dlpack.h"
#include "tropical_gemm/dtype.h"
#include "tropical_gemm/error.h"

namespace tropical::python {

namespace nb = nanobind;

enum class Access { read, write };

// One array as it was read; tensor.shape and tensor.strides point to the fields below.
struct Reading {
  static constexpr int kMaxDims = 64;  // NumPy's limit

  DLTensor tensor{};
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims];

  Reading() = default;
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  // Sets shape and strides of a compact row-major array.
  void compact(const std::vector<int64_t>& sizes);
};

class Library {
 public:
  virtual ~Library() = default;
  // Returns what keeps the memory alive: the array, or another that stands for it. Throws for one that cannot be used.
  virtual nb::object read(nb::handle array, const char* name, Access access, Reading& reading) const = 0;
  // A new row-major array on the device of `like`, which may lend its dtype too; `reading` is filled in.
  virtual nb::object empty(const std::vector<int64_t>& shape, const DLDataType& dtype, nb::handle like,
                           const DLDevice& device, Reading& reading) const = 0;
  // The stream that the library's own work would run on now.
  virtual void* current_stream(int device) const = 0;
  // How many threads its own work on the CPU would use; 0 where it has none.
  virtual int threads() const = 0;
};

// nullptr where it is none of these.
const Library* library_of(nb::handle array);

// The libraries, made when an array of theirs first comes.
const Library* torch_library(nb::handle array);
const Library* cupy_library(nb::handle array);

// "float32, float64, ...": the element types there are.
std::string dtype_list();
[[noreturn]] void bad_value(const std::string& text);
[[noreturn]] void bad_dtype(const std::string& dtype, const char* name);
std::string text_of(nb::handle object);

}  // namespace tropical::python
