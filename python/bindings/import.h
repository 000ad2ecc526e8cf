// Memory that a DLPack producer lends, and its return once the GPU is done with it.
#pragma once
#include <nanobind/nanobind.h>

#include "tropical_gemm/dlpack.h"

namespace tropical::python {

namespace nb = nanobind;

// A managed tensor of either form; the deleter is called once.
class Import {
 public:
  explicit Import(DLManagedTensor* tensor) : legacy_(tensor) {}
  explicit Import(DLManagedTensorVersioned* tensor) : versioned_(tensor) {}
  Import(Import&& other) noexcept : legacy_(other.legacy_), versioned_(other.versioned_) {
    other.legacy_ = nullptr, other.versioned_ = nullptr;
  }
  Import& operator=(Import&&) = delete;
  ~Import() {
    if (legacy_ && legacy_->deleter) legacy_->deleter(legacy_);
    if (versioned_ && versioned_->deleter) versioned_->deleter(versioned_);
  }

 private:
  DLManagedTensor* legacy_ = nullptr;
  DLManagedTensorVersioned* versioned_ = nullptr;
};

// Gives `import` back when what is on the stream now has finished. A producer's allocator may hand the memory out again
// as soon as it is back, to work on a stream that knows nothing of this one.
void return_when_done(Import import, int device, void* stream);

}  // namespace tropical::python
