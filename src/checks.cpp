#include "checks.h"

#include <algorithm>

#include "overlap.h"
#include "tensor.h"
#include "tropical_gemm/error.h"
#include "tropical_gemm/matmul.h"

namespace tropical {

void bad_value(const std::string& text) { throw Error(ErrorCode::invalid_value, text); }
void bad_type(const std::string& text) { throw Error(ErrorCode::invalid_type, text); }

void check_device(const DLTensor& x, const char* name, const DLTensor& a, const char* a_name) {
  if (!on_host(x) && !on_cuda(x))
    throw Error(ErrorCode::unsupported,
                std::string(name) + " is on " + device_text(x) + ", expected host memory or a CUDA device");
  if (on_cuda(x) != on_cuda(a) || (on_cuda(x) && x.device.device_id != a.device.device_id))
    bad_value(std::string(a_name) + " is on " + device_text(a) + " and " + name + " is on " + device_text(x) +
              "; all arrays of a call have to be on one device");
}

void check_forms(std::initializer_list<Named> tensors, int most_axes) {
  for (const auto& [x, name] : tensors) {
    if (!x) continue;
    const std::string has = std::string(name) + " has ";
    if (x->ndim < 0) bad_value(has + std::to_string(x->ndim) + " dimensions, expected at least 0");
    if (x->ndim > most_axes)
      bad_value(has + std::to_string(x->ndim) + " dimensions, at most " + std::to_string(most_axes) + " are supported");
    if (x->ndim > 0 && !x->shape) bad_value(has + "a null pointer for its shape");
  }
}

void check_memory(const DLTensor& x, const char* name, int64_t item) {
  const std::string who = name;
  int64_t bytes = item;
  for (int d = 0; d < x.ndim; ++d) {
    if (x.shape[d] < 0) bad_value(who + " has a negative size in its shape " + shape_text(x));
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(x.shape[d], 1), &bytes))
      bad_value(who + " of shape " + shape_text(x) + " has more bytes than 64 bits can count");
  }
  if (is_empty(x)) return;  // its strides and its pointer mean nothing
  if (!x.data) bad_value(who + " of shape " + shape_text(x) + " has a null data pointer");
  // Far from the ends of int64, so that sums of two tensors' offsets stay inside, too.
  constexpr int64_t kAddressSpace = int64_t{1} << 60;
  int64_t low = reinterpret_cast<intptr_t>(data_of(x)), high = low, reach = item;
  bool fits = !__builtin_add_overflow(high, item, &high);
  for (int d = 0; d < x.ndim && fits; ++d) {
    int64_t span = 0;
    fits = x.shape[d] == 1 ||
           !(__builtin_mul_overflow(stride_of(x, d), item, &span) ||
             __builtin_mul_overflow(span, x.shape[d] - 1, &span) || span < -kAddressSpace || span > kAddressSpace);
    reach += std::abs(span);
    int64_t& end = span < 0 ? low : high;
    fits = fits && reach <= kAddressSpace && !__builtin_add_overflow(end, span, &end);
  }
  if (!fits) bad_value(who + " of shape " + shape_text(x) + " has strides that lead out of any memory");
  if (reinterpret_cast<uintptr_t>(data_of(x)) % static_cast<uintptr_t>(item))
    bad_value(who + " is not aligned to its element size of " + std::to_string(item) + " bytes; pass an aligned copy");
}

void check_tensor(const DLTensor& x, const char* name, const DLTensor& a, const char* a_name) {
  check_device(x, name, a, a_name);
  dtype_of(x.dtype, name);  // throws if there is none
  check_memory(x, name, item_bytes(x));
}

void check_operand(const DLTensor& x, const char* name, const DLTensor& a, const char* a_name) {
  if (x.ndim < 1) bad_value(std::string(name) + " has 0 dimensions, expected at least 1");
  check_tensor(x, name, a, a_name);
}

void check_written(const DLTensor& x, const char* name) {
  if (is_empty(x)) return;  // its strides mean nothing
  for (int d = 0; d < x.ndim; ++d)
    if (x.shape[d] > 1 && stride_of(x, d) == 0)
      bad_value(std::string(name) + " of shape " + shape_text(x) + " has stride 0 in axis " + std::to_string(d) +
                "; an output needs an element of its own for each entry");
  if (overlaps_itself(x)) bad_value(std::string(name) + " of shape " + shape_text(x) + " overlaps itself in memory");
}

void check_disjoint(const DLTensor& written, const char* name, const DLTensor& other, const char* other_name) {
  if (overlaps(written, other))
    bad_value(std::string(name) + " overlaps " + other_name + " in memory; pass an output of its own");
}

void check_shape(const DLTensor& x, const char* name, const std::vector<int64_t>& expected) {
  if (x.ndim != static_cast<int>(expected.size()) || !std::equal(expected.begin(), expected.end(), x.shape))
    bad_value(std::string(name) + " has shape " + shape_text(x) + ", expected " +
              shape_text(expected.data(), static_cast<int>(expected.size())));
}

void check_dtype(const DLTensor& x, const char* name, DType expected, const char* like) {
  const DType d = dtype_of(x.dtype, name);
  if (d != expected)
    bad_type(std::string(name) + " has dtype " + dtype_name(d) + ", expected " + dtype_name(expected) + like);
}

void check_float(DType dtype, const char* name) {
  if (dtype > DType::bf16)
    bad_type(std::string(name) + " has dtype " + dtype_name(dtype) +
             ", expected one of float32, float64, float16, bfloat16");
}

bool is_int64(const DLTensor& x, const char* name) {
  const DType d = dtype_of(x.dtype, name);
  if (d != DType::i32 && d != DType::i64)
    bad_type(std::string(name) + " has dtype " + dtype_name(d) + ", expected int32 or int64");
  return d == DType::i64;
}

void check_threads(int threads) {
  if (threads < 0) bad_value("threads is " + std::to_string(threads) + ", expected 0 (all) or a positive number");
}

void check_outputs(const DLTensor* const (&written)[2], const char* const (&written_names)[2],
                   std::span<const DLTensor* const> read, std::span<const char* const> read_names) {
  for (int w = 0; w < 2; ++w) {
    check_written(*written[w], written_names[w]);
    for (size_t r = 0; r < read.size(); ++r)
      if (read[r]) check_disjoint(*written[w], written_names[w], *read[r], read_names[r]);
  }
  check_disjoint(*written[0], written_names[0], *written[1], written_names[1]);
}

Strided strided(const DLTensor& x) {
  Strided s{data_of(x), {}};
  for (int d = 0; d < x.ndim; ++d) s.stride[d] = x.shape[d] == 1 ? 0 : stride_of(x, d);
  return s;
}

Strided strided_integers(const DLTensor& x, const char* name, const std::vector<int64_t>& shape, const DLTensor& a,
                         const char* a_name, bool& wide) {
  check_shape(x, name, shape);
  check_tensor(x, name, a, a_name);
  wide = is_int64(x, name);
  return strided(x);
}

}  // namespace tropical
