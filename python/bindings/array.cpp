#include "array.h"

#include <nanobind/ndarray.h>

#include <bit>
#include <cstring>
#include <new>
#include <optional>

#include "device_array.h"
#include "tropical_gemm/matmul.h"
#include "tropical_gemm/tensor_view.h"

namespace tropical::python {
namespace {

// The DLPack type of a one-letter buffer format, if there is one.
std::optional<DLDataType> dlpack_type(const char* format, Py_ssize_t item_size) {
  if (std::strlen(format) != 1) return std::nullopt;
  const auto bits = static_cast<uint8_t>(8 * item_size);
  switch (*format) {
    case '?':
      return DLDataType{kDLBool, bits, 1};
    case 'e':
    case 'f':
    case 'd':
      return DLDataType{kDLFloat, bits, 1};
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return DLDataType{kDLInt, bits, 1};
    default:
      return std::nullopt;
  }
}

// Strips a byte-order mark; true if it says the other order than this machine's.
bool take_byte_order(const char*& format) {
  constexpr bool little = std::endian::native == std::endian::little;
  switch (*format) {
    case '@':
    case '=':
      ++format;
      return false;
    case '<':
      ++format;
      return !little;
    case '>':
    case '!':
      ++format;
      return little;
    default:
      return false;
  }
}

bool is_bfloat16(nb::handle array) { return text_of(array.attr("dtype")) == "bfloat16"; }

// Memory that the host can read, whatever the producer calls it.
bool is_host(int device_type) {
  return device_type == kDLCPU || device_type == kDLCUDAHost || device_type == kDLROCMHost;
}
bool is_cuda(int device_type) { return device_type == kDLCUDA || device_type == kDLCUDAManaged; }

// The stream on which an array of no known library is used where the caller names none, as in DLPack.
constexpr intptr_t kLegacyDefaultStream = 1;

constexpr const char* kLegacy = "dltensor";
constexpr const char* kVersioned = "dltensor_versioned";

}  // namespace

const NumPy& numpy() {
  // Never destroyed: the interpreter may be gone by then.
  static const NumPy* const cache = [] {
    const nb::module_ module = nb::module_::import_("numpy");
    auto* made = new NumPy{module.attr("ndarray"), module.attr("empty"), {}};
    const auto add = [&]<class T>() {
      if constexpr (!std::is_same_v<T, bfloat16>)
        made->dtypes[static_cast<size_t>(TypeInfo<T>::kId)] = module.attr("dtype")(TypeInfo<T>::kName);
    };
    [&]<class... T>(TypeList<T...>) { (add.template operator()<T>(), ...); }(AllTypes{});
    return made;
  }();
  return *cache;
}

Array::Array(nb::handle object, const char* name, Access access, std::optional<intptr_t> stream)
    : object_(nb::borrow(object)) {
  if (PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(numpy().ndarray.ptr())))
    read_buffer(name, access);
  else if (PyCapsule_CheckExact(object.ptr()))
    take_capsule(object, name, access);
  else if ((library_ = library_of(object)))
    object_ = library_->read(object, name, access, reading_);
  else
    read_dlpack(name, access, stream);
}

Array::~Array() {
  if (view_.obj) PyBuffer_Release(&view_);
}

void Array::keep_until_done(void* stream) {
  if (made_) made_->filled();
  if (!import_ || !on_cuda()) return;
  return_when_done(std::move(*import_), tensor().device.device_id, stream);
  import_.reset();
}

void Array::read_buffer(const char* name, Access access) {
  // Writability is checked below: asking for it here would give NumPy's text, which names no argument.
  constexpr int flags = PyBUF_STRIDES | PyBUF_FORMAT;
  std::optional<DLDataType> dtype;
  if (PyObject_GetBuffer(object_.ptr(), &view_, flags) != 0) {
    // Types from outside NumPy have no format; bfloat16 is read through its bits.
    PyErr_Clear();
    if (!is_bfloat16(object_)) bad_dtype(text_of(object_.attr("dtype")), name);
    const nb::object bits = object_.attr("view")("uint16");
    if (PyObject_GetBuffer(bits.ptr(), &view_, flags) != 0) throw nb::python_error();
    dtype = dlpack_dtype<bfloat16>();
  }
  const char* format = view_.format;
  const bool swapped = take_byte_order(format);
  if (!dtype) dtype = dlpack_type(format, view_.itemsize);
  // The destructor does not run when a constructor throws.
  const auto fail = [&](const std::string& text) {
    PyBuffer_Release(&view_);
    bad_value(std::string(name) + text);
  };
  if (!dtype) {
    PyBuffer_Release(&view_);
    bad_dtype(text_of(object_.attr("dtype")), name);
  }
  if (swapped)
    fail(" has dtype " + text_of(object_.attr("dtype")) + " of foreign byte order; pass " + name + ".astype(" + name +
         ".dtype.newbyteorder('='))");
  if (access == Access::write && view_.readonly) fail(" is read-only, expected a writable array");
  for (int d = 0; d < view_.ndim; ++d) {
    // The strides of empty arrays and of axes of size 1 are arbitrary and never used.
    if (view_.len > 0 && view_.shape[d] > 1 && view_.strides[d] % view_.itemsize)
      fail(" has a stride of " + std::to_string(view_.strides[d]) + " bytes in axis " + std::to_string(d) +
           ", not a multiple of its element size of " + std::to_string(view_.itemsize) + " bytes; pass a copy");
    reading_.strides[d] = view_.strides[d] / view_.itemsize;
  }
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  DLTensor& t = reading_.tensor;
  t.data = view_.buf;
  t.device = {kDLCPU, 0};
  t.ndim = view_.ndim;
  t.dtype = *dtype;
  t.shape = reinterpret_cast<int64_t*>(view_.shape);
  t.strides = reading_.strides;
}

void Array::read_dlpack(const char* name, Access access, std::optional<intptr_t> stream) {
  const nb::object device = object_.attr("__dlpack_device__")();
  const int type = nb::cast<int>(nb::int_(device[0]));
  if (!is_host(type) && !is_cuda(type))  // before the producer does any work there
    throw Error(ErrorCode::unsupported, std::string(name) + " is on a device of DLPack type " + std::to_string(type) +
                                            ", expected host memory or a CUDA device");
  nb::dict options;
  if (is_cuda(type)) options["stream"] = stream.value_or(kLegacyDefaultStream);
  const nb::object method = object_.attr("__dlpack__");
  nb::object capsule;
  try {
    capsule = method(nb::arg("max_version") = nb::make_tuple(1, 0), **options);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    capsule = method(**options);  // a producer from before DLPack 1.0
  }
  take_capsule(capsule, name, access);
}

// Takes ownership, which DLPack marks by renaming the capsule.
void Array::take_capsule(nb::handle capsule, const char* name, Access access) {
  if (PyCapsule_IsValid(capsule.ptr(), kVersioned)) {
    auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), kVersioned));
    if (managed->version.major != DLPACK_MAJOR_VERSION)
      throw Error(ErrorCode::unsupported, std::string(name) + " speaks DLPack " +
                                              std::to_string(managed->version.major) + ", this build speaks 1");
    if (access == Access::write && managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY)
      bad_value(std::string(name) + " is read-only, expected a writable array");
    if (access == Access::write && managed->flags & DLPACK_FLAG_BITMASK_IS_COPIED)
      bad_value(std::string(name) + " can only be reached as a copy, expected an array that can be written in place");
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    import_.emplace(managed);
    reading_.tensor = managed->dl_tensor;
  } else if (PyCapsule_IsValid(capsule.ptr(), kLegacy)) {
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kLegacy));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    import_.emplace(managed);
    reading_.tensor = managed->dl_tensor;
  } else {
    throw Error(ErrorCode::invalid_type, std::string(name) + ".__dlpack__() returned no unused DLPack capsule");
  }
  if (is_host(tensor().device.device_type)) reading_.tensor.device = {kDLCPU, 0};
}

Array::Array(const std::vector<int64_t>& shape, const DLDataType& dtype, const Array& like,
             std::optional<intptr_t> stream)
    : library_(like.library_) {
  if (library_) {
    object_ = library_->empty(shape, dtype, like.object_, like.tensor().device, reading_);
  } else if (like.is_numpy()) {
    nb::object sizes = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
    for (size_t d = 0; d < shape.size(); ++d)
      PyTuple_SET_ITEM(sizes.ptr(), static_cast<Py_ssize_t>(d), PyLong_FromLongLong(shape[d]));
    const nb::object& known = numpy().dtypes[static_cast<size_t>(dtype_of(dtype, "a"))];
    object_ = numpy().empty(sizes, known.is_valid() ? known : nb::object(like.object().attr("dtype")));
    read_buffer("out", Access::write);
  } else {
    reading_.tensor.dtype = dtype;
    reading_.compact(shape);
    if (like.on_cuda())
      make_on_device(shape, like.tensor().device.device_id, stream);
    else
      make_on_host(shape);
  }
}

void Array::make_on_device(const std::vector<int64_t>& shape, int device, std::optional<intptr_t> stream) {
  object_ = nb::cast(
      DeviceArray(shape, tensor().dtype, device, reinterpret_cast<void*>(stream.value_or(kLegacyDefaultStream))));
  made_ = nb::inst_ptr<DeviceArray>(object_);
  reading_.tensor.data = made_->data();
  reading_.tensor.device = {kDLCUDA, device};
}

void Array::make_on_host(const std::vector<int64_t>& shape) {
  constexpr std::align_val_t alignment{64};  // what consumers such as JAX take without copying
  const DLDataType& dtype = tensor().dtype;
  size_t bytes = dtype.bits / 8u;
  for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
  void* data = ::operator new(bytes, alignment);
  const nb::capsule owner(data, [](void* p) noexcept { ::operator delete (p, std::align_val_t{64}); });
  const std::vector<size_t> sizes(shape.begin(), shape.end());
  reading_.tensor.data = data;
  reading_.tensor.device = {kDLCPU, 0};
  object_ = nb::cast(nb::ndarray<nb::array_api>(data, sizes.size(), sizes.data(), owner, nullptr,
                                                nb::dlpack::dtype{dtype.code, dtype.bits, dtype.lanes},
                                                nb::device::cpu::value));
}

CudaOptions Placement::options() {
  if (!like_.on_cuda()) return {};
  const int device = like_.tensor().device.device_id;
  CudaOptions options;
  if (stream_)
    options.stream = reinterpret_cast<void*>(*stream_);
  else if (like_.library())
    options.stream = like_.library()->current_stream(device);
  else
    options.stream = reinterpret_cast<void*>(kLegacyDefaultStream);
  if (like_.library()) {
    options.allocate = [](void* self, size_t bytes) { return static_cast<Placement*>(self)->allocate(bytes); };
    options.context = this;
  }
  return options;
}

void* Placement::allocate(size_t bytes) {
  const nb::gil_scoped_acquire gil;
  constexpr DLDataType kByte{kDLUInt, 8, 1};
  Reading reading;
  workspace_ =
      like_.library()->empty({static_cast<int64_t>(bytes)}, kByte, like_.object(), like_.tensor().device, reading);
  return reading.tensor.data;
}

}  // namespace tropical::python
