// What the product and gradient tests share: the supported pairs, the shapes and the kinds of values.
#pragma once
#include <string>
#include <vector>

#include "host_tensor.h"

namespace tropical::testing {

#ifdef TG_TEST_FEW
inline constexpr bool kFew = true;  // instrumented builds: a smaller sample
#else
inline constexpr bool kFew = false;
#endif

struct Pair {
  Semiring semiring;
  DType dtype;
};
std::vector<Pair> supported_pairs();
std::vector<Pair> differentiable_pairs();
std::string pair_text(Pair pair);
// Names the cases of a GoogleTest suite; this header does without GoogleTest.
inline constexpr auto pair_name = [](const auto& info) { return pair_text(info.param); };

enum class Fill {
  uniform,       // reals, or integers that stay in range
  few,           // four values: many ties
  signed_zeros,  // -0, +0, -1, 1
  nans,          // some NaNs of any sign and payload
  nan_lines,     // whole rows of a, columns of b
  infinities,    // of both signs among small numbers; the extremes of integers
  masked,        // the semiring's zero in half the places and in whole lines
  limits,        // the edges of ranges and of rounding
  outlier,       // uniform but for one extreme element
  bits,          // any bit pattern
};
inline constexpr Fill kFills[] = {Fill::uniform, Fill::few,        Fill::signed_zeros, Fill::nans,    Fill::nan_lines,
                                  Fill::masked,  Fill::infinities, Fill::limits,       Fill::outlier, Fill::bits};
const char* fill_name(Fill fill);
const char* layout_name(Layout layout);

enum class Lines { rows, columns };  // what nan_lines and masked fill as a whole
void fill(HostTensor& x, Fill kind, Pair pair, Lines lines, Rng& rng);

// Leading axes of a and b.
struct BatchCase {
  Shape a, b;
};
const std::vector<BatchCase>& batch_cases();

// Sizes around the widths of vectors and tiles; m * n * k * batches stays below `work`.
struct MatmulShape {
  Shape a, b, c;
};
MatmulShape random_shape(Rng& rng, int64_t work);

Shape with_matrix(const Shape& batch, int64_t rows, int64_t cols);
Shape broadcast(const BatchCase& batch);
std::string shape_name(const Shape& shape);

}  // namespace tropical::testing
