#include "device_array.h"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <string>

#include "array.h"
#include "gil.h"
#include "library.h"
#include "tropical_gemm/cuda.h"
#include "tropical_gemm/matmul.h"

namespace tropical::python {

struct DeviceArray::Memory {
  void* data = nullptr;
  int device;
  std::vector<void*> streams;  // that the memory was filled on, or handed over to
  void* mark = nullptr;        // of the work that fills it
  bool streams_last = false;   // they outlive the memory

  Memory(size_t bytes, int d, void* stream) : device(d), streams{stream} {
    data = cuda_allocate(std::max<size_t>(bytes, 1), device, stream);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    try {
      if (mark) cuda_unmark(mark);
      // A stream that may be gone cannot be asked when it is done.
      if (!streams_last) {
        cuda_retire(data, device);
        return;
      }
      for (size_t s = 0; s + 1 < streams.size(); ++s) cuda_order(device, streams[s], streams.back());
      cuda_release(data, device, streams.back());
    } catch (const std::exception&) {  // the process is ending, and the driver is gone
    }
  }

  // Work that `stream` gets from now on finds the memory filled.
  void hand_over(void* stream) {
    void* const filled_on = streams.front();
    // The per-thread stream is another one for each thread.
    if (stream == filled_on && stream != kPerThreadStream) return;
    if (mark)
      cuda_wait(mark, device, stream);
    else
      cuda_order(device, filled_on, stream);
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  }

 private:
  static inline void* const kPerThreadStream = reinterpret_cast<void*>(2);
};

namespace {

// What a capsule owns.
template <class Managed>
struct Exported {
  Managed managed{};
  std::vector<int64_t> shape, strides;
  std::shared_ptr<void> memory;
};

template <class Managed>
constexpr const char* kName = "dltensor";
template <>
constexpr const char* kName<DLManagedTensorVersioned> = "dltensor_versioned";

template <class Managed>
nb::object capsule(const DLTensor& tensor, std::vector<int64_t> shape, std::shared_ptr<void> memory) {
  auto* x = new Exported<Managed>;
  x->shape = std::move(shape);
  x->memory = std::move(memory);
  x->strides.resize(x->shape.size());
  int64_t step = 1;
  for (size_t d = x->shape.size(); d-- > 0; step *= x->shape[d]) x->strides[d] = step;
  x->managed.dl_tensor = tensor;
  x->managed.dl_tensor.ndim = static_cast<int32_t>(x->shape.size());
  x->managed.dl_tensor.shape = x->shape.data();
  x->managed.dl_tensor.strides = x->strides.data();
  x->managed.manager_ctx = x;
  x->managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->manager_ctx); };
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>)
    x->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  // A consumer renames the capsule and calls the deleter itself.
  PyObject* made = PyCapsule_New(&x->managed, kName<Managed>, [](PyObject* object) {
    if (!PyCapsule_IsValid(object, kName<Managed>)) return;
    auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(object, kName<Managed>));
    managed->deleter(managed);
  });
  if (!made) {
    delete x;
    throw nb::python_error();
  }
  return nb::steal(made);
}

[[noreturn]] void buffer_error(const char* text) { throw nb::buffer_error(text); }

}  // namespace

DeviceArray::DeviceArray(const std::vector<int64_t>& shape, const DLDataType& dtype, int device, void* stream)
    : shape_(shape), dtype_(dtype) {
  memory_ = std::make_shared<Memory>(bytes(), device, stream);
}

size_t DeviceArray::bytes() const {
  size_t bytes = dtype_.bits / 8u;
  for (const int64_t n : shape_) bytes *= static_cast<size_t>(n);
  return bytes;
}

void* DeviceArray::data() const { return memory_->data; }

void DeviceArray::filled() const {
  if (!memory_->mark) memory_->mark = cuda_mark(memory_->device, memory_->streams.front());
}

bool DeviceArray::streams_last() const { return memory_->streams_last; }
void DeviceArray::set_streams_last(bool last) { memory_->streams_last = last; }

nb::tuple DeviceArray::device() const { return nb::make_tuple(static_cast<int>(kDLCUDA), memory_->device); }

nb::object DeviceArray::dlpack(nb::handle stream, nb::handle max_version, nb::handle dl_device, nb::handle copy) const {
  if (!dl_device.is_none() && !nb::tuple(nb::borrow(dl_device)).equal(device()))
    buffer_error("the array is on a CUDA device, and is not moved to another");
  if (copy.ptr() == Py_True) buffer_error("the array is handed over without a copy only");
  // None is the legacy default stream (1); -1 asks for no order.
  if (!stream.is_none() && !PyIndex_Check(stream.ptr()))
    throw Error(ErrorCode::invalid_type, "stream is of type " + text_of(stream.type().attr("__qualname__")) +
                                             ", expected None or the int that DLPack gives a stream");
  const intptr_t consumer = stream.is_none() ? 1 : nb::cast<intptr_t>(nb::int_(stream));
  if (consumer == 0) bad_value("stream is 0, which is ambiguous; expected 1, 2 or the address of a stream");
  if (consumer != -1) memory_->hand_over(reinterpret_cast<void*>(consumer));
  DLTensor t{};
  t.data = memory_->data;
  t.device = {kDLCUDA, memory_->device};
  t.dtype = dtype_;
  const bool versioned = !max_version.is_none() && nb::cast<int>(nb::int_(max_version[0])) >= DLPACK_MAJOR_VERSION;
  return versioned ? capsule<DLManagedTensorVersioned>(t, shape_, memory_)
                   : capsule<DLManagedTensor>(t, shape_, memory_);
}

namespace {

void* const kLegacyDefaultStream = reinterpret_cast<void*>(1);

// A compact array in host memory, copied to the first GPU.
DeviceArray to_device(nb::handle array) {
  const Array x(array, "array", Access::read, std::nullopt);
  const DLTensor& t = x.tensor();
  DeviceArray made({t.shape, t.shape + t.ndim}, t.dtype, 0, kLegacyDefaultStream);
  {
    const WithoutGil without;
    cuda_copy(made.data(), t.data, made.bytes(), 0, kLegacyDefaultStream);
  }
  return made;
}

// A new NumPy array with the contents of one that to_device or a product of such arrays made.
nb::object to_host(const DeviceArray& array) {
  nb::object made = numpy().empty(nb::tuple(nb::cast(array.shape())),
                                  numpy().dtypes[static_cast<size_t>(dtype_of(array.dtype(), "array"))]);
  const Array x(made, "array", Access::write, std::nullopt);
  {
    const WithoutGil without;
    cuda_copy(x.tensor().data, array.data(), array.bytes(), 0, kLegacyDefaultStream);
  }
  return made;
}

}  // namespace

void bind_device_array(nb::module_& m) {
  nb::class_<DeviceArray>(m, "DeviceArray", "A result on a GPU, to be taken by another library.")
      .def("__dlpack__", &DeviceArray::dlpack, nb::kw_only(), nb::arg("stream").none() = nb::none(),
           nb::arg("max_version").none() = nb::none(), nb::arg("dl_device").none() = nb::none(),
           nb::arg("copy").none() = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: object = None, max_version: object = None, "
                   "dl_device: object = None, copy: object = None) -> object"))
      .def("__dlpack_device__", &DeviceArray::device, nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def_prop_ro(
          "shape", [](const DeviceArray& x) { return nb::tuple(nb::cast(x.shape())); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("dtype", [](const DeviceArray& x) { return dtype_name(dtype_of(x.dtype(), "array")); })
      .def_prop_rw("streams_last", &DeviceArray::streams_last, &DeviceArray::set_streams_last,
                   "Whether the streams that it was made on and handed over to outlive it. Otherwise its memory is\n"
                   "given back once all work that the device has by then is done.");
  m.def("to_device", &to_device, nb::sig("def to_device(array: object, /) -> DeviceArray"));
  m.def("to_host", &to_host, nb::sig("def to_host(array: DeviceArray, /) -> typing.Any"));
}

}  // namespace tropical::python
