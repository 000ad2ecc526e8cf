// The product and its gradient as XLA's custom calls, on the CPU and on CUDA devices. XLA brings buffers, stream and
// scratch memory; which shapes and dtypes fit was settled when they were traced.
#include "jax.h"

#include <deque>
#include <exception>
#include <new>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tropical_gemm/matmul.h"
#include "xla/ffi/api/ffi.h"

namespace tropical::python {
namespace {

namespace nb = nanobind;
namespace ffi = xla::ffi;

using Shape = std::vector<int64_t>;

// Where a call runs.
struct Place {
  DLDevice device{kDLCPU, 0};
  CudaOptions cuda;
};

// One array of a call, row-major; where `shape` is larger than what is there, its axes of one element serve all.
class Tensor {
 public:
  Tensor(void* data, const DLDataType& dtype, const Place& place, Shape shape, const Shape& there)
      : shape_(std::move(shape)), strides_(shape_.size(), 0) {
    int64_t step = 1;
    for (size_t d = there.size(); d-- > 0; step *= there[d]) strides_[d] = there[d] == shape_[d] ? step : 0;
    tensor_.data = data;
    tensor_.device = place.device;
    tensor_.dtype = dtype;
    tensor_.ndim = static_cast<int32_t>(shape_.size());
    tensor_.shape = shape_.data();
    tensor_.strides = strides_.data();
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  const DLTensor& operator*() const { return tensor_; }

 private:
  Shape shape_, strides_;
  DLTensor tensor_{};
};

DLDataType dtype_of(const ffi::AnyBuffer& x) {
  switch (x.element_type()) {
    case ffi::DataType::PRED:
      return dlpack_dtype<bool>();
    case ffi::DataType::BF16:
      return dlpack_dtype<bfloat16>();
    case ffi::DataType::F16:
    case ffi::DataType::F32:
    case ffi::DataType::F64:
      return {kDLFloat, static_cast<uint8_t>(8 * ffi::ByteWidth(x.element_type())), 1};
    default:
      return {kDLInt, static_cast<uint8_t>(8 * ffi::ByteWidth(x.element_type())), 1};
  }
}

Shape shape_of(const ffi::AnyBuffer& x) { return {x.dimensions().begin(), x.dimensions().end()}; }

// The tensors of one call, in place of its buffers; they stay where they are.
class Tensors {
 public:
  explicit Tensors(const Place& place) : place_(place) {}

  const DLTensor& as(const ffi::AnyBuffer& x, Shape shape) {
    return *tensors_.emplace_back(x.untyped_data(), dtype_of(x), place_, std::move(shape), shape_of(x));
  }
  const DLTensor& as(const ffi::AnyBuffer& x) { return as(x, shape_of(x)); }
  // An operand that is not read, of the dtype of x.
  const DLTensor& stand_in(const ffi::AnyBuffer& x, Shape shape) {
    alignas(8) static char nothing[8];
    void* some = x.element_count() > 0 ? x.untyped_data() : nothing;
    const Shape one(shape.size(), 1);
    return *tensors_.emplace_back(some, dtype_of(x), place_, std::move(shape), one);
  }

 private:
  const Place& place_;
  std::deque<Tensor> tensors_;
};

ffi::ErrorCode code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_value:
    case ErrorCode::invalid_type:
      return ffi::ErrorCode::kInvalidArgument;
    case ErrorCode::unsupported:
      return ffi::ErrorCode::kFailedPrecondition;
    case ErrorCode::out_of_memory:
      return ffi::ErrorCode::kResourceExhausted;
    default:
      return ffi::ErrorCode::kInternal;
  }
}

// Runs the body of a handler; XLA takes no exceptions.
template <class Body>
ffi::Error guarded(const Body& body) {
  try {
    body();
    return ffi::Error::Success();
  } catch (const Error& error) {
    return {code_of(error.code()), error.what()};
  } catch (const std::bad_alloc&) {
    return {ffi::ErrorCode::kResourceExhausted, "out of host memory"};
  } catch (const std::exception& error) {
    return {ffi::ErrorCode::kInternal, error.what()};
  }
}

template <class List>
ffi::AnyBuffer nth(const List& list, size_t index) {
  if constexpr (std::is_same_v<List, ffi::RemainingRets>)
    return *list.template get<ffi::AnyBuffer>(index).value();
  else
    return list.template get<ffi::AnyBuffer>(index).value();
}

// (a, b) -> values, and the argmax where there is a second result.
ffi::Error product(const Place& place, const ffi::AnyBuffer& a, const ffi::AnyBuffer& b, ffi::RemainingRets made,
                   std::string_view semiring, int64_t argmax_offset, int64_t threads) {
  return guarded([&] {
    Tensors tensors(place);
    MatmulOptions options;
    options.argmax_offset = argmax_offset;
    options.threads = static_cast<int>(threads);
    options.cuda = place.cuda;
    const DLTensor* argmax = made.size() > 1 ? &tensors.as(nth(made, 1)) : nullptr;
    matmul(parse_semiring(semiring), tensors.as(a), tensors.as(b), tensors.as(nth(made, 0)), argmax, options);
  });
}

// (grad_c, argmax, then a and b where they are read) -> those of grad_a and grad_b that are needed. All have the same
// number of axes; what has fewer elements than a result or an operand beside it is broadcast.
ffi::Error gradient(const Place& place, const ffi::AnyBuffer& grad_c, const ffi::AnyBuffer& argmax,
                    ffi::RemainingArgs operands, ffi::RemainingRets grads, std::string_view semiring, bool need_a,
                    bool need_b, bool read_a, bool read_b, int64_t threads) {
  return guarded([&] {
    Tensors tensors(place);
    const size_t row = grad_c.dimensions().size() - 2, col = row + 1;
    Shape full = shape_of(grad_c);
    const auto widen_to = [&](const ffi::AnyBuffer& x) {
      for (size_t d = 0; d < row; ++d)
        if (x.dimensions()[d] != 1) full[d] = x.dimensions()[d];
    };
    widen_to(argmax);
    for (size_t i = 0; i < operands.size(); ++i) widen_to(nth(operands, i));
    for (size_t i = 0; i < grads.size(); ++i) widen_to(nth(grads, i));
    const int64_t k = nth(grads, 0).dimensions()[need_a ? col : row];
    const auto shape = [&](bool needed, size_t index, int64_t m, int64_t n) {
      if (needed) return shape_of(nth(grads, index));
      Shape s = full;
      s[row] = m, s[col] = n;
      return s;
    };
    const Shape shape_a = shape(need_a, 0, full[row], k), shape_b = shape(need_b, need_a ? 1 : 0, k, full[col]);
    const DLTensor& a = read_a ? tensors.as(nth(operands, 0), shape_a) : tensors.stand_in(grad_c, shape_a);
    const DLTensor& b = read_b ? tensors.as(nth(operands, read_a ? 1 : 0), shape_b) : tensors.stand_in(grad_c, shape_b);
    const DLTensor* grad_a = need_a ? &tensors.as(nth(grads, 0)) : nullptr;
    const DLTensor* grad_b = need_b ? &tensors.as(nth(grads, need_a ? 1 : 0)) : nullptr;
    matmul_backward(parse_semiring(semiring), tensors.as(grad_c, full), tensors.as(argmax, full), a, b, grad_a, grad_b,
                    static_cast<int>(threads), place.cuda);
  });
}

// XLA gives memory at multiples of a smaller number than the library asks for.
constexpr size_t kAlignment = 256;

void* allocate(void* scratch, size_t bytes) {
  const std::optional<void*> memory = static_cast<ffi::ScratchAllocator*>(scratch)->Allocate(bytes + kAlignment);
  if (!memory) return nullptr;
  const auto address = reinterpret_cast<uintptr_t>(*memory);
  return reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

// What a body is on each kind of device, and what XLA hands over there.
template <class Body>
auto on_cpu(Body body) {
  return [body](auto... arguments) { return body(Place{}, arguments...); };
}
// The work goes to XLA's stream, which later work of the same program waits for; the host does not.
template <class Body>
auto on_cuda(Body body) {
  return [body](void* stream, int32_t device, ffi::ScratchAllocator scratch, auto... arguments) {
    return body(Place{{kDLCUDA, device}, {stream, allocate, &scratch}}, arguments...);
  };
}
auto cpu_context() { return ffi::Ffi::Bind(); }
auto cuda_context() {
  return ffi::Ffi::Bind().Ctx<ffi::PlatformStream<void*>>().Ctx<ffi::DeviceOrdinal>().Ctx<ffi::ScratchAllocator>();
}

auto product_arguments(auto context) {
  return std::move(context)
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .RemainingRets()
      .template Attr<std::string_view>("semiring")
      .template Attr<int64_t>("argmax_offset")
      .template Attr<int64_t>("threads");
}
auto gradient_arguments(auto context) {
  return std::move(context)
      .template Arg<ffi::AnyBuffer>()
      .template Arg<ffi::AnyBuffer>()
      .RemainingArgs()
      .RemainingRets()
      .template Attr<std::string_view>("semiring")
      .template Attr<bool>("need_a")
      .template Attr<bool>("need_b")
      .template Attr<bool>("read_a")
      .template Attr<bool>("read_b")
      .template Attr<int64_t>("threads");
}

XLA_FFI_DEFINE_HANDLER(kProductOnCpu, on_cpu(product), product_arguments(cpu_context()));
XLA_FFI_DEFINE_HANDLER(kProductOnCuda, on_cuda(product), product_arguments(cuda_context()));
XLA_FFI_DEFINE_HANDLER(kGradientOnCpu, on_cpu(gradient), gradient_arguments(cpu_context()));
XLA_FFI_DEFINE_HANDLER(kGradientOnCuda, on_cuda(gradient), gradient_arguments(cuda_context()));

}  // namespace

nb::object jax_custom_calls() {
  nb::list handlers;
  const auto add = [&](const char* target, const char* platform, XLA_FFI_Handler* handler) {
    handlers.append(nb::make_tuple(target, platform, nb::capsule(reinterpret_cast<void*>(handler))));
  };
  add("tropical_gemm_matmul", "cpu", kProductOnCpu);
  add("tropical_gemm_matmul", "CUDA", kProductOnCuda);
  add("tropical_gemm_matmul_backward", "cpu", kGradientOnCpu);
  add("tropical_gemm_matmul_backward", "CUDA", kGradientOnCuda);
  return nb::make_tuple(nb::make_tuple(XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR), handlers);
}

}  // namespace tropical::python
