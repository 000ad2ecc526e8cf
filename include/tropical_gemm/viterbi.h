// The best path through a trellis with scores in logarithms: hidden Markov models, alignments.
#pragma once
#include <atomic>

#include "tropical_gemm/cuda.h"
#include "tropical_gemm/dlpack.h"
#include "tropical_gemm/export.h"

namespace tropical {

struct TrellisOptions {
  // At most this many threads; 0 means as many as OpenMP would use.
  int threads = 0;
  // Polled at every step; once true, the call throws Error(cancelled) and the outputs hold unspecified values.
  const std::atomic<bool>* cancel = nullptr;
  // For viterbi: the values by products of matrices in log2(T) rounds, for long sequences of few states. It does S
  // times the work, takes scratch memory of 2 x B x T x S x S, and adds in another order, so that floats may differ by
  // rounding.
  bool scan = false;
  // For tensors on a CUDA device.
  CudaOptions cuda = {};
};

// For each sequence of a batch the path that maximises the sum along it, and that sum:
//   v[0,j] = initial[j] + emission[0,j],   v[t,j] = max_i(v[t-1,i] + transition[i,j]) + emission[t,j],
//   score = max_j(v[T-1,j] + final[j]),    with the lowest state on ties and the first NaN where there is one.
//   emission    (B, T, S), one of f16 bf16 f32 f64; the others have its dtype, and half types are computed in f32
//   transition  (S, S), or (B or 1, T-1 or 1, S, S): [from, to]
//   initial, final  nullptr for zeros, or (B or 1, S)
//   lengths     nullptr, or int32 or int64 (B): a sequence ends after so many steps; clamped to [0, T]
//   paths       int32 or int64 (B, T): the states, -1 from the length on, and everywhere where the score is -inf
//   scores      (B), f64 for f64 and f32 otherwise; 0 for length 0
// Any strides; tensors all in host memory or all on one CUDA device. Scratch memory: B x T x S scores (on a device S
// is rounded up to a multiple of 16), and a copy or two of one step's transitions. Throws Error before anything is
// written, except for `cancelled` and `out_of_memory`. Source: A. Viterbi, IEEE Trans. Inf. Theory 13 (1967) 260;
// L. Rabiner, Proc. IEEE 77 (1989) 257, section III.B.
TROPICAL_API void viterbi(const DLTensor& emission, const DLTensor& transition, const DLTensor* initial,
                          const DLTensor* final, const DLTensor* lengths, const DLTensor& paths, const DLTensor& scores,
                          const TrellisOptions& options = {});

// For each sequence of a batch the best alignment of `targets`, in order, to the steps, by the rules of connectionist
// temporal classification: every step has one label, `blank` or a target; a target may last for several steps, and two
// equal targets are a blank apart. Sums run from the first step to the last; on a tie the path that is behind is taken.
//   log_probs       (B, T, C), one of f16 bf16 f32 f64, half types are computed in f32
//   targets         int32 or int64 (B, L)
//   input_lengths, target_lengths   nullptr, or int32 or int64 (B); clamped to [0, T] and [0, L]
//   labels          int32 or int64 (B, T): the label of each step, -1 from the input's length on
//   scores          (B, T), of log_probs' dtype: its element at that label, 0 from the input's length on
// A sequence without an alignment of more than -inf (too many targets, say), or with a target that is `blank` or no
// class, has labels -1 and scores -inf throughout. Source: A. Graves et al., ICML 2006, 369, the recursion of
// section 4.1 with max in the place of the sum.
TROPICAL_API void forced_align(const DLTensor& log_probs, const DLTensor& targets, const DLTensor* input_lengths,
                               const DLTensor* target_lengths, int64_t blank, const DLTensor& labels,
                               const DLTensor& scores, const TrellisOptions& options = {});

}  // namespace tropical
