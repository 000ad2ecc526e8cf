// The one exception of the library, besides std::bad_alloc. Thrown at the entry, before anything is written, except for
// `cancelled` and `out_of_memory`.
#pragma once
#include <stdexcept>
#include <string>

#include "tropical_gemm/export.h"

namespace tropical {

enum class ErrorCode : int {
  invalid_value = 1,  // shapes, strides, overlap, unknown names: Python's ValueError
  invalid_type = 2,   // dtypes and kinds: Python's TypeError
  unsupported = 3,    // a device or build that cannot do it: Python's RuntimeError
  cancelled = 4,      // the caller's cancel flag was seen; outputs hold unspecified values
  out_of_memory = 5,  // outputs may hold unspecified values, as after a std::bad_alloc
  internal = 6,
  overflow = 7,  // an exact result does not fit its dtype: Python's OverflowError
};

class TROPICAL_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace tropical
