// Memory of ours on a GPU as an array that other libraries take by DLPack.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "tropical_gemm/dlpack.h"

namespace tropical::python {

namespace nb = nanobind;

class DeviceArray {
 public:
  // Row-major; the work that fills it runs on `stream`.
  DeviceArray(const std::vector<int64_t>& shape, const DLDataType& dtype, int device, void* stream);

  void* data() const;
  size_t bytes() const;
  const std::vector<int64_t>& shape() const { return shape_; }
  const DLDataType& dtype() const { return dtype_; }
  nb::tuple device() const;
  // The work that fills it has been enqueued.
  void filled() const;
  // Whether all streams that it is made on or handed over to outlive it, as those of libraries that keep theirs do.
  bool streams_last() const;
  void set_streams_last(bool last);
  // The standard's method: the consumer's stream waits for ours. When the last consumer lets go, the memory is released
  // after all work on the streams it was handed over to (see streams_last).
  nb::object dlpack(nb::handle stream, nb::handle max_version, nb::handle dl_device, nb::handle copy) const;

 private:
  struct Memory;
  std::shared_ptr<Memory> memory_;
  std::vector<int64_t> shape_;
  DLDataType dtype_;
};

void bind_device_array(nb::module_& m);

}  // namespace tropical::python
