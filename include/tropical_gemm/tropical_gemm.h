// Everything a C++ user needs: #include <tropical_gemm/tropical_gemm.h>, link TropicalGemm::tropical_gemm.
#pragma once
#include "tropical_gemm/closure.h"
#include "tropical_gemm/cuda.h"
#include "tropical_gemm/dlpack.h"
#include "tropical_gemm/dtype.h"
#include "tropical_gemm/error.h"
#include "tropical_gemm/matmul.h"
#include "tropical_gemm/permute.h"
#include "tropical_gemm/semiring.h"
#include "tropical_gemm/tensor_view.h"
#include "tropical_gemm/version.h"
#include "tropical_gemm/viterbi.h"
