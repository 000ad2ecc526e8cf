// The entry of permutations: their rules, and axes that stay together as one.
#include "tropical_gemm/permute.h"

#include <vector>

#include "checks.h"
#include "execute.h"
#include "params.h"
#include "tensor.h"

namespace tropical {
namespace {

int element_bytes(const DLTensor& x) {
  const int bits = x.dtype.bits * x.dtype.lanes;
  for (const int bytes : {1, 2, 4, 8, 16})
    if (bits == 8 * bytes) return bytes;
  bad_type("x has elements of " + std::to_string(bits) + " bits, expected 1, 2, 4, 8 or 16 bytes");
}

bool aligned(const void* p, int64_t bytes) { return reinterpret_cast<uintptr_t>(p) % static_cast<size_t>(bytes) == 0; }

// Neighbours in the innermost axis of both as one element, as long as everything else is a multiple of that.
void widen(PermuteParams& p) {
  while (p.ndim > 0 && p.stride[p.ndim - 1] == 1 && p.size[p.ndim - 1] % 2 == 0 && p.item < 16) {
    for (int d = 0; d + 1 < p.ndim; ++d)
      if (p.stride[d] % 2 != 0) return;
    if (!aligned(p.from, int64_t{2} * p.item) || !aligned(p.to, int64_t{2} * p.item)) return;
    for (int d = 0; d + 1 < p.ndim; ++d) p.stride[d] /= 2;
    p.item *= 2;
    if ((p.size[p.ndim - 1] /= 2) == 1) --p.ndim;
  }
}

}  // namespace

void permute(const DLTensor& x, std::span<const int> axes, const DLTensor& out, const PermuteOptions& options) {
  check_forms({{&x, "x"}, {&out, "out"}}, kMaxPermuteAxes);
  PermuteParams p;
  p.item = element_bytes(x);
  // Not check_tensor, which allows fewer axes.
  check_device(x, "x", x, "x");
  check_memory(x, "x", p.item);
  std::vector<bool> seen(static_cast<size_t>(x.ndim));
  std::vector<int64_t> shape;
  for (const int axis : axes) {
    if (axis < 0 || axis >= x.ndim || seen[static_cast<size_t>(axis)])
      bad_value("axes holds " + std::to_string(axis) + ", expected each axis of x, 0 to " + std::to_string(x.ndim - 1) +
                ", once");
    seen[static_cast<size_t>(axis)] = true;
    shape.push_back(x.shape[axis]);
  }
  if (axes.size() != static_cast<size_t>(x.ndim))
    bad_value("axes has " + std::to_string(axes.size()) + " elements, expected " + std::to_string(x.ndim));
  check_shape(out, "out", shape);
  if (out.dtype.code != x.dtype.code || out.dtype.bits != x.dtype.bits || out.dtype.lanes != x.dtype.lanes)
    bad_type("out has another dtype than x");
  check_device(out, "out", x, "x");
  check_memory(out, "out", p.item);
  check_threads(options.threads);
  if (is_empty(x)) return;
  int64_t compact = 1;
  for (int d = out.ndim - 1; d >= 0; compact *= out.shape[d--])
    if (out.shape[d] > 1 && stride_of(out, d) != compact)
      bad_value("out of shape " + shape_text(out) + " has stride " + std::to_string(stride_of(out, d)) + " in axis " +
                std::to_string(d) + ", expected a row-major array");
  check_disjoint(out, "out", x, "x");
  for (const int axis : axes) {
    const int64_t size = x.shape[axis], stride = stride_of(x, axis);
    if (size == 1) continue;
    const bool joins = p.ndim > 0 && p.stride[p.ndim - 1] == stride * size;
    if (!joins) p.size[p.ndim++] = 1;
    p.size[p.ndim - 1] *= size;
    p.stride[p.ndim - 1] = stride;
  }
  p.from = data_of(x), p.to = data_of(out);
  p.threads = options.threads;
  p.cancel.flag = options.cancel;
  widen(p);
  execute(p, x, options.cuda);
}

}  // namespace tropical
