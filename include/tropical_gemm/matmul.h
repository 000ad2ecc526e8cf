// The public operations: C[i,j] = add_k mul(A[i,k], B[k,j]) over a semiring, and its gradient.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tropical_gemm/cuda.h"
#include "tropical_gemm/error.h"
#include "tropical_gemm/export.h"
#include "tropical_gemm/semiring.h"
#include "tropical_gemm/tensor_view.h"

namespace tropical {

struct MatmulOptions {
  // C <- C add (A mul B). With argmax, an index is rewritten only where the product is strictly better.
  bool accumulate = false;
  // Added to every index that is not -1, so that K can be processed in pieces. offset + K <= 2^31 - 1.
  int64_t argmax_offset = 0;
  // At most this many threads; 0 means as many as OpenMP would use.
  int threads = 0;
  // Polled between blocks; once true, the call throws Error(cancelled) and the outputs hold unspecified values.
  const std::atomic<bool>* cancel = nullptr;
  // For tensors on a CUDA device.
  CudaOptions cuda = {};
};

// The shape of the product, by the rules of numpy.matmul: 1-D operands, broadcast leading dimensions.
// Throws Error(invalid_value) if the shapes do not fit, Error(invalid_type) for a dtype that no semiring has.
TROPICAL_API std::vector<int64_t> matmul_shape(const DLTensor& a, const DLTensor& b);
// The same where the dtypes of both must be one that the semiring has; throws Error(invalid_type) otherwise.
TROPICAL_API std::vector<int64_t> matmul_shape(Semiring semiring, const DLTensor& a, const DLTensor& b);
// The same where the options must fit too: all that matmul refuses before it looks at its outputs.
TROPICAL_API std::vector<int64_t> matmul_shape(Semiring semiring, const DLTensor& a, const DLTensor& b, bool argmax,
                                               const MatmulOptions& options);

// Computes the product of tensors that are all in host memory, or all on one CUDA device (see CudaOptions). Pinned
// memory counts as host memory, managed memory as memory of its device.
//   a       (..., M, K) or (K,); b (..., K, N) or (K,), of one dtype that the semiring supports; any strides
//   c       exactly matmul_shape(a, b), the same dtype; any strides without overlap; disjoint from a and b
//   argmax  nullptr, or int32 of c's shape: the selected k, the lowest on ties, the first NaN's if there is one,
//           -1 where nothing was selected (the value is the semiring's infinite zero, or K = 0)
// NaN propagates; a stored zero is +0 and a stored NaN has one fixed pattern; integers saturate.
// Throws Error before anything is written, except for `cancelled` and `out_of_memory`.
TROPICAL_API void matmul(Semiring semiring, const DLTensor& a, const DLTensor& b, const DLTensor& c,
                         const DLTensor* argmax = nullptr, const MatmulOptions& options = {});

// The product of values with multiplicities: c[i,j] is the best of the candidates a[i,k] + b[k,j], and c_counts[i,j]
// the sum of a_counts[i,k] * b_counts[k,j] over those that equal it; 0 where c is the semiring's zero or NaN.
//   semiring  max_plus or min_plus; values f32 f64 i32 i64 of any strides, as for matmul
//   counts    of the shape of their values, f64 or i64, all of one dtype; nullptr for 1, or 0 where the value is the
//   zero
// Throws Error(overflow) for integer values and i64 counts of the result that do not fit; the outputs then hold
// unspecified values. On a CUDA device the host waits where values or counts are integers.
TROPICAL_API void count_matmul(Semiring semiring, const DLTensor& a, const DLTensor* a_counts, const DLTensor& b,
                               const DLTensor* b_counts, const DLTensor& c, const DLTensor& c_counts,
                               const MatmulOptions& options = {});

// The gradient of sum(grad_c * C) with respect to A and B, through the indices that matmul selected.
//   grad_c  the shape of the product; argmax the same shape, int32 or int64; a and b as given to matmul
//   grad_a  nullptr, or a's shape; grad_b nullptr, or b's shape; all of one dtype: f16 bf16 f32 f64
// An index outside [0, K) contributes nothing. Sums run in a fixed order, in f32 for f16 and bf16. Once `cancel` is
// true, the call throws Error(cancelled) and the gradients hold unspecified values.
TROPICAL_API void matmul_backward(Semiring semiring, const DLTensor& grad_c, const DLTensor& argmax, const DLTensor& a,
                                  const DLTensor& b, const DLTensor* grad_a, const DLTensor* grad_b, int threads = 0,
                                  const CudaOptions& cuda = {}, const std::atomic<bool>* cancel = nullptr);

// Typed forms for matrices in host memory; see above. `requires` rejects combinations that the table does not have.
template <class S, class T>
requires supported_v<S, T>
void matmul(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, const MatmulOptions& options = {}) {
  matmul(S::kId, a.dlpack(), b.dlpack(), c.dlpack(), nullptr, options);
}
template <class S, class T>
requires supported_v<S, T>
void matmul(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, MatrixView<int32_t> argmax,
            const MatmulOptions& options = {}) {
  const DLTensor arg = argmax.dlpack();
  matmul(S::kId, a.dlpack(), b.dlpack(), c.dlpack(), &arg, options);
}
template <class S, class T>
requires differentiable_v<S, T>
void matmul_backward(MatrixView<const T> grad_c, MatrixView<const int32_t> argmax, MatrixView<const T> a,
                     MatrixView<const T> b, MatrixView<T> grad_a, MatrixView<T> grad_b, int threads = 0) {
  const DLTensor ga = grad_a.dlpack(), gb = grad_b.dlpack();
  matmul_backward(S::kId, grad_c.dlpack(), argmax.dlpack(), a.dlpack(), b.dlpack(), &ga, &gb, threads);
}

// Names. Spelling is free in case, '-', '_' and blanks: "max_plus", "MaxPlus", "max-plus", "maxplus".
TROPICAL_API Semiring parse_semiring(std::string_view name);  // throws Error(invalid_value), listing the names
TROPICAL_API const char* semiring_name(Semiring semiring);
TROPICAL_API const char* dtype_name(DType dtype);
TROPICAL_API DType dtype_of(const DLDataType& dtype, const char* argument);  // throws Error(invalid_type)

// Facts of this build and machine.
struct BuildInfo {
  std::string version;
  std::string isa;                // the instruction set in use
  std::vector<std::string> isas;  // those compiled in that this machine can run, best first
  int max_threads;
  std::string filter;           // certified filtering: "auto", "always" or "never"
  std::vector<DType> filtered;  // the element types whose max_plus and min_plus it computes with this instruction set
};
TROPICAL_API BuildInfo build_info();
// Chooses one of `isas` for the whole process (for tests and comparisons); "" restores the best.
// The environment variable TROPICAL_GEMM_ISA sets it at start-up.
TROPICAL_API void set_isa(std::string_view isa);

// Certified filtering (docs/certified-filtering.md) rules most candidates out in a cheaper type and proves the rest. It
// changes how long a product takes, never its result.
// "auto": where it pays; "always": wherever it can be proved, whatever it costs; "never". For the whole process, for
// tests and comparisons; "" restores what the environment variable TROPICAL_GEMM_FILTER says: one of these, spelt so;
// empty or not set, "auto". Another name there makes every product throw Error(invalid_value).
TROPICAL_API void set_filter(std::string_view mode);
// What the last product that this thread asked for did: how many outputs there were, how many of them the filter
// computed, and how many of these it could not prove and computed anew. A call that was refused changes nothing.
struct FilterReport {
  int64_t outputs = 0, filtered = 0, unproven = 0;
};
TROPICAL_API FilterReport last_filter();
// Products on CUDA devices are reported, on all threads, while this was called with true more often than with false:
// the host waits for each of them then.
TROPICAL_API void record_filter(bool wanted);

}  // namespace tropical
