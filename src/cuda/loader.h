// Opens libtropical_gemm_cuda.so when it is first needed, and turns its status into exceptions.
#pragma once
#include <utility>

#include "backend.h"
#include "tropical_gemm/error.h"

namespace tropical::cuda {

// The table of the library beside this one, or of the file that TROPICAL_GEMM_CUDA_LIBRARY names. Opened once, by the
// first thread that asks; throws Error(unsupported) saying what was looked for and what was found.
const Backend& backend();

inline void check(const Status& status) {
  if (status.code != 0) throw Error(static_cast<ErrorCode>(status.code), status.message);
}

// The result of one entry of the table; throws what its status says.
template <class Result, class... Params, class... Args>
Result call(Result (*entry)(Params...), Args&&... args) {
  Status status;
  if constexpr (std::is_void_v<Result>) {
    entry(std::forward<Args>(args)..., &status);
    check(status);
  } else {
    const Result result = entry(std::forward<Args>(args)..., &status);
    check(status);
    return result;
  }
}

}  // namespace tropical::cuda
