// What products and permutations of drawn tensors must be: plain loops over indices.
#pragma once
#include <cstring>
#include <span>

#include "lowering.h"
#include "tensor.h"
#include "visit.h"

namespace tropical::fuzz {

template <class T>
T read(const char* from) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, sizeof(T));
  return read_element(reinterpret_cast<const T*>(&bits));
}

// Entry k of the line of an operand that output `index` needs: batch axes from the right, 0 where it is broadcast.
inline char* operand(const Tensor& x, const std::vector<int64_t>& index, int out_batch, int64_t row, int64_t col,
                     bool has_row, bool has_col) {
  std::vector<int64_t> at;
  const DLTensor& t = x.dlpack();
  const int batch = t.ndim - has_row - has_col;
  for (int d = 0; d < batch; ++d) at.push_back(t.shape[d] == 1 ? 0 : index[static_cast<size_t>(out_batch - batch + d)]);
  if (has_row) at.push_back(row);
  if (has_col) at.push_back(col);
  return x.entry(at.data());
}

template <class S, class T>
bool is_product(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor* argmax, bool accumulate,
                int64_t argmax_offset) {
  const DLTensor &ta = a.dlpack(), &tb = b.dlpack(), &tc = c.dlpack();
  const bool row = ta.ndim > 1, col = tb.ndim > 1;
  const int batch = tc.ndim - row - col;
  const int64_t depth = ta.shape[ta.ndim - 1];
  const auto selects = [](T x, T y) { return S::better(x, y) || (is_nan(x) && !is_nan(y)); };
  std::vector<int64_t> index(static_cast<size_t>(tc.ndim));
  if (c.empty()) return true;
  if (accumulate && depth == 0) return c.same() && (!argmax || argmax->same());
  do {
    const int64_t i = row ? index[static_cast<size_t>(batch)] : 0, j = col ? index.back() : 0;
    T best = S::template zero<T>();
    int64_t chosen = -1;
    for (int64_t k = 0; k < depth; ++k) {
      const T x = S::mul(read<T>(operand(a, index, batch, i, k, row, true)),
                         read<T>(operand(b, index, batch, k, j, true, col)));
      if (k == 0 || selects(x, best)) best = x, chosen = k;
    }
    const T zero = S::template zero<T>();
    if (S::kMasks && !is_nan(best) && !S::better(best, zero) && !S::better(zero, best)) chosen = -1;
    T value = canonical(best);
    int64_t arg = chosen < 0 ? -1 : chosen + argmax_offset;
    if (accumulate) {
      const T old = read<T>(c.entry_before(index.data()));
      if (!selects(best, old)) {
        value = canonical(old);
        if (argmax) arg = read<int32_t>(argmax->entry_before(index.data()));
      }
    }
    if (std::memcmp(&value, c.entry(index.data()), sizeof value) != 0) return false;
    if (argmax && read<int32_t>(argmax->entry(index.data())) != arg) return false;
  } while (next(index, tc.shape));
  return true;
}

inline bool is_permutation(const Tensor& x, std::span<const int> axes, const Tensor& out) {
  const DLTensor& t = out.dlpack();
  const size_t bytes = static_cast<size_t>(t.dtype.bits * t.dtype.lanes / 8);
  std::vector<int64_t> index(static_cast<size_t>(t.ndim)), from(index.size());
  if (out.empty()) return true;
  do {
    for (size_t d = 0; d < index.size(); ++d) from[static_cast<size_t>(axes[d])] = index[d];
    if (std::memcmp(x.entry(from.data()), out.entry(index.data()), bytes) != 0) return false;
  } while (next(index, t.shape));
  return true;
}

}  // namespace tropical::fuzz
