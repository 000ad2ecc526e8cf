// From validated params to the backend of the device that the tensors are on.
#pragma once
#include "params.h"
#include "tropical_gemm/cuda.h"
#include "tropical_gemm/dlpack.h"

namespace tropical {

// `a` is the operand as it came: its device is where the work runs.
void execute(MatmulParams params, const DLTensor& a, const CudaOptions& cuda);
void execute(BackwardParams params, const DLTensor& a, const CudaOptions& cuda);
void execute(const CountParams& params, const DLTensor& a, const CudaOptions& cuda);
void execute(const ViterbiParams& params, const DLTensor& emission, const CudaOptions& cuda);
void execute(const AlignParams& params, const DLTensor& log_probs, const CudaOptions& cuda);
void execute(const PermuteParams& params, const DLTensor& x, const CudaOptions& cuda);
void execute(const GraphParams& params, const DLTensor& a, const CudaOptions& cuda);

// Scratch memory of a product; none on the CPU.
size_t scratch_bytes(const MatmulParams& params, const DLTensor& a);

}  // namespace tropical
