// Arguments of a call as plain values, and the arrays that it writes.
#pragma once
#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <vector>

#include "array.h"
#include "tropical_gemm/matmul.h"

namespace tropical::python {

Semiring semiring_of(nb::handle name);
int64_t integer_of(nb::handle object, const char* name, const char* expected);
// None: as many as OpenMP would use.
int threads_of(nb::handle object);
// The same of a call on arrays like this one; None on tensors of PyTorch: as many as PyTorch would use.
int threads_of(nb::handle object, const Array& like);

using Stream = std::optional<intptr_t>;
// The address of a stream, settled in Python; None for the one that the arrays' library uses.
Stream stream_of(nb::handle object);

// An array to write: `wanted` itself, a new one where it is True, none where it is False.
class Output {
 public:
  Output(nb::handle wanted, const char* name, const std::vector<int64_t>& shape, const DLDataType& dtype,
         const Array& like, const Stream& stream);
  const DLTensor* tensor() const { return array_ ? &array_->tensor() : nullptr; }
  void keep_until_done(void* stream) {
    if (array_) array_->keep_until_done(stream);
  }
  // What the caller gets: as with numpy.matmul, a scalar where NumPy's new array has no axes.
  nb::object result() const;

 private:
  bool made_;
  std::optional<Array> array_;
};

}  // namespace tropical::python
