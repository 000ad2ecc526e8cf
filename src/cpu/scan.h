// Decisions that depend on data: which path a product may take, and what NaN does to a finished one.
#pragma once
#include "cpu/kernels.h"
#include "cpu/loops.h"

namespace tropical::cpu {

// Infinities of opposite sign under +, or an infinity and a zero under *: their product is NaN.
bool makes_nan(Semiring semiring, const Facts& a, const Facts& b);

// The path on which integers of these facts are exact.
Path integer_path(Semiring semiring, DType dtype, const Facts& a, const Facts& b);

// Sets the rows and columns of C that a NaN of A or B reaches, and their indices: the lowest k of a NaN.
// Only for products that do not both accumulate and track argmax.
void spread_nan(const Product& product, DType dtype);

}  // namespace tropical::cpu
