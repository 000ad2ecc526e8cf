// The plain structs that cross from the validated entry to a backend. Nothing else does.
#pragma once
#include <atomic>
#include <cstdint>

#include "tropical_gemm/dtype.h"
#include "tropical_gemm/semiring.h"

namespace tropical {

inline constexpr int kMaxBatchDims = 32;

// One operand: element (b..., i, j) is at data + sum(b * batch) + i * row + j * col, in elements.
struct Operand {
  void* data = nullptr;
  int64_t row = 0;
  int64_t col = 0;
  int64_t batch[kMaxBatchDims] = {};
};

// Batch dimensions shared by all operands; a broadcast operand has stride 0 there.
struct BatchShape {
  int ndim = 0;
  int64_t size[kMaxBatchDims] = {};

  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < ndim; ++d) n *= size[d];
    return n;
  }
  // The element offset of batch member `index` in an operand.
  int64_t offset(const Operand& x, int64_t index) const {
    int64_t o = 0;
    for (int d = ndim - 1; d >= 0; --d) {
      o += index % size[d] * x.batch[d];
      index /= size[d];
    }
    return o;
  }
};

// A cancel flag of either interface.
struct CancelFlag {
  const std::atomic<bool>* flag = nullptr;
  const volatile int32_t* word = nullptr;

  bool raised() const { return (flag && flag->load(std::memory_order_relaxed)) || (word && *word != 0); }
};

// Whether a product may go through cheap bounds that rule out nearly all candidates; the result is the same.
enum class Filtering : int {
  automatic,  // where it pays
  always,     // wherever such a path exists
  never,
  unproven,  // for tests: as always, and what should be proved is believed
};
// How many outputs were computed in which way.
struct FilterCounts {
  int64_t filtered = 0, plain = 0;
  int64_t unproven = 0;  // of the filtered ones: not proved at once, and computed anew
};

struct MatmulParams {
  Semiring semiring{};
  DType dtype{};
  int64_t m = 0, n = 0, k = 0;
  BatchShape batch;
  Operand a, b, c;
  Operand argmax;  // int32; data is null if not wanted
  bool accumulate = false;
  int64_t argmax_offset = 0;
  Filtering filtering = Filtering::automatic;
  FilterCounts* filter_counts = nullptr;  // added to; in memory of the device that the matrices are on
  int threads = 0;
  CancelFlag cancel;
};

// grad_a and grad_b have stride 0 along batch dimensions that their operand was broadcast over.
struct BackwardParams {
  Semiring semiring{};
  DType dtype{};
  int64_t m = 0, n = 0, k = 0;
  BatchShape batch;
  Operand grad_c, argmax, a, b;
  Operand grad_a, grad_b;  // data is null if not wanted
  bool argmax_is_int64 = false;
  int threads = 0;
  CancelFlag cancel;
};

// Values of max_plus or min_plus, and how many candidates reach them. Counts without data are 1, or 0 for the zero.
struct CountParams {
  Semiring semiring{};
  DType dtype{};  // f32 f64 i32 i64
  int64_t m = 0, n = 0, k = 0;
  BatchShape batch;
  Operand a, b, c;
  Operand a_count, b_count, c_count;
  bool counts_are_int64 = false;  // otherwise f64
  int threads = 0;
  CancelFlag cancel;
};

inline constexpr int kMaxPermuteAxes = 64;

// A copy to a row-major array: axes of `to` from the outermost, none of size 1, neighbours that stay together merged.
struct PermuteParams {
  int item = 0;  // bytes of an element: 1 2 4 8 16
  int ndim = 0;
  int64_t size[kMaxPermuteAxes];
  int64_t stride[kMaxPermuteAxes];  // in `from`, in elements
  const void* from = nullptr;
  void* to = nullptr;
  int threads = 0;
  CancelFlag cancel;
};

// A tensor of known axes; stride 0 where one element serves all.
struct Strided {
  void* data = nullptr;
  int64_t stride[4] = {};
};

struct ViterbiParams {
  DType dtype{};  // f16 bf16 f32 f64; the recurrence and the scores are f64 for f64, otherwise f32
  int64_t batch = 0, steps = 0, states = 0;
  Strided emission;        // (batch, step, state)
  Strided transition;      // (batch, step - 1, from, to)
  Strided initial, final;  // (batch, state); data is null where there is none
  Strided lengths;         // (batch); data is null where all sequences have all steps
  Strided paths;           // (batch, step)
  Strided scores;          // (batch)
  bool lengths_are_int64 = false, paths_are_int64 = false;
  bool scan = false;  // the values by products of matrices in log-many rounds instead of step by step
  Filtering filtering = Filtering::automatic;  // of these products
  int threads = 0;
  CancelFlag cancel;
};

struct AlignParams {
  DType dtype{};  // f16 bf16 f32 f64
  int64_t batch = 0, steps = 0, classes = 0, targets = 0;
  int64_t blank = 0;
  Strided log_probs;       // (batch, step, class)
  Strided target;          // (batch, position)
  Strided input_lengths;   // (batch); data is null where all steps count
  Strided target_lengths;  // (batch); data is null where all targets count
  Strided labels;          // (batch, step)
  Strided scores;          // (batch, step), of dtype
  bool targets_are_int64 = false, input_lengths_are_int64 = false, target_lengths_are_int64 = false;
  bool labels_are_int64 = false;
  int threads = 0;
  CancelFlag cancel;
};

// What one pass over a graph's matrix found. Positions are row * n + column, the lowest; kNowhere where there is none.
struct GraphReport {
  static constexpr int64_t kNowhere = INT64_MAX;
  int64_t nan_at = kNowhere;
  int64_t infinite_at = kNowhere;  // the infinity at the other end of the order than the semiring's zero
  int64_t negative_at = kNowhere;
  int64_t zeros = 0, absent = 0;  // off the diagonal
  int64_t diverged = kNowhere;    // the lowest node whose closed walks have no best one
  int64_t differs = 0;
  double magnitude = 0;  // the largest finite one of an edge
};

// Matrices of a graph, and of predecessors: each step is one kernel of a closure besides the products.
enum class GraphStep : int {
  load,      // to <- the edges of `from`, pred <- where they begin; reports what it saw; either may be absent
  copy,      // to <- from
  panel,     // closes `to`, rows first, first + 1, ... of a matrix, over these nodes; `from` (m, m) is scratch memory
  diagonal,  // what is better than `one` on the diagonal of `to`: reported beyond the tolerance, else made `one`
  resolve,   // pred[i, j] = limit + k becomes pred_from[k, j]
  start,     // to <- `one` at node `first`, or at all where that is -1, zero elsewhere; pred <- kNoPredecessor
  differs,   // whether to and from do
};

struct GraphParams {
  GraphStep step{};
  Semiring semiring{};
  DType dtype{};
  int64_t m = 0, n = 0;
  Operand to, from, pred, pred_from;  // predecessors are int32
  GraphReport* report = nullptr;      // in memory of the device that the matrices are on
  double tolerance = 0;               // on floats: how much better than `one` a closed walk may be by rounding
  int64_t first = 0;                  // the node of row 0
  int32_t limit = 0;
  // load: an element equal to this, in the bits of the dtype, is no edge; so is the semiring's zero.
  bool has_no_edge = false, undirected = false, unweighted = false, reflexive = false;
  uint64_t no_edge = 0;
  int threads = 0;
  CancelFlag cancel;
};

// What SciPy puts where a node has no predecessor.
inline constexpr int32_t kNoPredecessor = -9999;

}  // namespace tropical
