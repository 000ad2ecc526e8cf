// The run-time-typed entry: validate once, hand the params to the backend of the device.
#include "tropical_gemm/matmul.h"

#include "cpu/backend.h"
#include "execute.h"
#include "filter.h"
#include "parallel.h"
#include "tropical_gemm/version.h"
#include "validate.h"

namespace tropical {

void matmul(Semiring semiring, const DLTensor& a, const DLTensor& b, const DLTensor& c, const DLTensor* argmax,
            const MatmulOptions& options) {
  execute(validate_matmul(semiring, a, b, c, argmax, options), a, options.cuda);
}

void count_matmul(Semiring semiring, const DLTensor& a, const DLTensor* a_counts, const DLTensor& b,
                  const DLTensor* b_counts, const DLTensor& c, const DLTensor& c_counts, const MatmulOptions& options) {
  execute(validate_count(semiring, a, a_counts, b, b_counts, c, c_counts, options), a, options.cuda);
}

void matmul_backward(Semiring semiring, const DLTensor& grad_c, const DLTensor& argmax, const DLTensor& a,
                     const DLTensor& b, const DLTensor* grad_a, const DLTensor* grad_b, int threads,
                     const CudaOptions& cuda, const std::atomic<bool>* cancel) {
  BackwardParams p = validate_backward(semiring, grad_c, argmax, a, b, grad_a, grad_b, threads);
  p.cancel.flag = cancel;
  execute(p, a, cuda);
}

BuildInfo build_info() {
  return {TROPICAL_GEMM_VERSION, cpu::isa(), cpu::isas(), thread_count(0), filter_mode_name(), cpu::filtered_types()};
}

void set_isa(std::string_view isa) { cpu::set_isa(isa); }

}  // namespace tropical
