// Reading a DLTensor.
#pragma once
#include <cstdint>
#include <string>

#include "tropical_gemm/dlpack.h"

namespace tropical {

// Memory that the host computes on, and memory that a CUDA device does.
inline bool on_host(const DLTensor& x) { return x.device.device_type == kDLCPU || x.device.device_type == kDLCUDAHost; }
inline bool on_cuda(const DLTensor& x) {
  return x.device.device_type == kDLCUDA || x.device.device_type == kDLCUDAManaged;
}
inline std::string device_text(const DLTensor& x) {
  if (on_host(x)) return "the CPU";
  if (on_cuda(x)) return "cuda:" + std::to_string(x.device.device_id);
  return "a device of DLPack type " + std::to_string(x.device.device_type);
}

inline int64_t item_bytes(const DLTensor& x) { return int64_t{x.dtype.bits} * x.dtype.lanes / 8; }

// By integers: an empty tensor may have any pointer and offset.
inline char* data_of(const DLTensor& x) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(x.data) + static_cast<uintptr_t>(x.byte_offset));
}

inline int64_t stride_of(const DLTensor& x, int axis) {
  if (x.strides) return x.strides[axis];
  int64_t step = 1;
  for (int d = x.ndim - 1; d > axis; --d) step *= x.shape[d];
  return step;
}

inline bool is_empty(const DLTensor& x) {
  for (int d = 0; d < x.ndim; ++d)
    if (x.shape[d] == 0) return true;
  return false;
}

inline std::string shape_text(const int64_t* shape, int ndim) {
  std::string s = "(";
  for (int d = 0; d < ndim; ++d) s += (d ? ", " : "") + std::to_string(shape[d]);
  return s + (ndim == 1 ? ",)" : ")");
}
inline std::string shape_text(const DLTensor& x) { return shape_text(x.shape, x.ndim); }

}  // namespace tropical
