// Rules for one tensor of a call, or two, that every public operation shares. All throw Error naming the argument.
#pragma once
#include <string>
#include <vector>

#include "tropical_gemm/dlpack.h"
#include "tropical_gemm/dtype.h"

namespace tropical {

[[noreturn]] void bad_value(const std::string& text);
[[noreturn]] void bad_type(const std::string& text);

// All tensors of a call are where `a` is, the one called `a_name`.
void check_device(const DLTensor& x, const char* name, const DLTensor& a, const char* a_name = "a");

// What every tensor must satisfy before its shape is looked at.
void check_tensor(const DLTensor& x, const char* name, const DLTensor& a, const char* a_name = "a");

// The product of two vectors has no axes, so a result may have none; an operand may not.
void check_operand(const DLTensor& x, const char* name, const DLTensor& a, const char* a_name = "a");

void check_written(const DLTensor& x, const char* name);
void check_disjoint(const DLTensor& written, const char* name, const DLTensor& other, const char* other_name);
void check_shape(const DLTensor& x, const char* name, const std::vector<int64_t>& expected);
void check_dtype(const DLTensor& x, const char* name, DType expected, const char* like);

}  // namespace tropical
