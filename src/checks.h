// Rules for one tensor of a call, or two, that every public operation shares. All throw Error naming the argument.
#pragma once
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "params.h"
#include "tropical_gemm/dlpack.h"
#include "tropical_gemm/dtype.h"

namespace tropical {

[[noreturn]] void bad_value(const std::string& text);
[[noreturn]] void bad_type(const std::string& text);

// All tensors of a call are where `a` is, the one called `a_name`.
void check_device(const DLTensor& x, const char* name, const DLTensor& a, const char* a_name = "a");

struct Named {
  const DLTensor* tensor;  // nullptr where an argument is not there
  const char* name;
};
// What every tensor of a call must satisfy before its shape is looked at.
void check_forms(std::initializer_list<Named> tensors, int most_axes = kMaxBatchDims + 2);

// Sizes, strides and address: that there can be such memory. `item` is the size of an element in bytes.
void check_memory(const DLTensor& x, const char* name, int64_t item);

// What every tensor must satisfy before its elements are looked at.
void check_tensor(const DLTensor& x, const char* name, const DLTensor& a, const char* a_name = "a");

// The product of two vectors has no axes, so a result may have none; an operand may not.
void check_operand(const DLTensor& x, const char* name, const DLTensor& a, const char* a_name = "a");

void check_written(const DLTensor& x, const char* name);
void check_disjoint(const DLTensor& written, const char* name, const DLTensor& other, const char* other_name);
void check_shape(const DLTensor& x, const char* name, const std::vector<int64_t>& expected);
void check_dtype(const DLTensor& x, const char* name, DType expected, const char* like);

void check_float(DType dtype, const char* name);
// int32 or int64: whether it is the latter.
bool is_int64(const DLTensor& x, const char* name);
void check_threads(int threads);

// Two outputs of a call, against all that it reads (nullptr where an argument is not there) and against each other.
void check_outputs(const DLTensor* const (&written)[2], const char* const (&written_names)[2],
                   std::span<const DLTensor* const> read, std::span<const char* const> read_names);

// The strides of a tensor that has passed; 0 for axes of size 1, whose strides mean nothing.
Strided strided(const DLTensor& x);

// The same for a tensor of int32 or int64 in a given shape; see check_tensor.
Strided strided_integers(const DLTensor& x, const char* name, const std::vector<int64_t>& shape, const DLTensor& a,
                         const char* a_name, bool& wide);

}  // namespace tropical
