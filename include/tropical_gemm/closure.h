// Closures of a square matrix over a semiring, and shortest paths from a few nodes.
#pragma once
#include <optional>

#include "tropical_gemm/matmul.h"

namespace tropical {

// How the elements of a matrix are read as edges. The zero of the semiring is never one.
struct GraphOptions {
  const void* no_edge = nullptr;  // nullptr, or an element of the dtype that stands for "no edge"
  bool undirected = false;        // an edge runs both ways; of two the better one counts
  bool unweighted = false;        // each edge has weight 1
  bool reflexive = true;          // the diagonal is at least `one`
  int threads = 0;
  // Polled on the way; once true, the call throws Error(cancelled) and the outputs hold unspecified values.
  const std::atomic<bool>* cancel = nullptr;
  CudaOptions cuda = {};
};

// What reading a matrix found. Positions are row * n + column, the lowest.
struct GraphFacts {
  std::optional<int64_t> nan_at;
  std::optional<int64_t> infinite_at;  // the infinity at the other end of the order than the semiring's zero
  std::optional<int64_t> negative_at;
  int64_t zeros = 0, absent = 0;  // off the diagonal: elements that are 0 and edges; elements that are no edge
  double magnitude = 0;           // the largest of a finite edge
};

// Reads the matrix of a graph, (n, n), and waits for it.
//   to    nullptr, or where the edges go, absent ones as the semiring's zero; may be the source itself, else disjoint
//   pred  nullptr, or int32 (n, n): the row where there is an edge off the diagonal, else -9999
TROPICAL_API GraphFacts load_graph(Semiring semiring, const DLTensor& source, const DLTensor* to, const DLTensor* pred,
                                   const GraphOptions& options = {});

struct ClosureOptions {
  // Closed walks of floats may be this much better than `one` by rounding; they then count as `one`.
  double tolerance = 0;
  int threads = 0;
  const std::atomic<bool>* cancel = nullptr;  // polled between blocks, on a GPU every half second
  // Called by the calling thread: how much of the work is done, in thousandths, or how many of the products.
  void (*progress)(void* context, int64_t done, int64_t total) = nullptr;
  void* context = nullptr;
  // `cuda.allocate` is called once, by the calling thread. The call waits for the device now and then.
  CudaOptions cuda = {};
};

// d (n, n), rows contiguous: d <- d add d² add d³ ..., in place (blocked Floyd-Warshall). With a reflexive d, as
// load_graph makes it, that is the Kleene star. With `pred` as load_graph makes it, pred[i, j] becomes the node before
// j on a best path from i. An index changes only where a path is strictly better; so on exact weights, and on floats
// that are not negative, no predecessors form a cycle, ties and edges of weight 0 included. Returns nothing, or a node
// with a closed walk better than `one`: then there is no closure, and d and pred hold unspecified values. Throws
// Error(cancelled).
TROPICAL_API std::optional<int64_t> closure(Semiring semiring, const DLTensor& d, const DLTensor* pred = nullptr,
                                            const ClosureOptions& options = {});

// Rows of paths before their first step: d (s, n) <- `one` at sources[r], zero elsewhere; a source of -1 stands for all
// nodes. pred: nullptr, or int32 (s, n) <- -9999. Not waited for.
TROPICAL_API void start_paths(Semiring semiring, const std::vector<int64_t>& sources, const DLTensor& d,
                              const DLTensor* pred, const CudaOptions& cuda = {});

// d (s, n) <- d add d w, until nothing changes or after `limit` products (Bellman-Ford); w is (n, n). pred: nullptr, or
// int32 (s, n), rewritten where a path is strictly better. Returns whether nothing changes any more.
TROPICAL_API bool relax(Semiring semiring, const DLTensor& w, const DLTensor& d, const DLTensor* pred, int64_t limit,
                        const ClosureOptions& options = {});

// Scratch memory in bytes of these two, which `cuda.allocate` will be asked for; on the CPU it is ordinary memory.
TROPICAL_API size_t closure_scratch(Semiring semiring, const DLTensor& d, bool pred);
TROPICAL_API size_t relax_scratch(Semiring semiring, const DLTensor& w, const DLTensor& d, bool pred);

}  // namespace tropical
