// Host memory seen through arbitrary strides, with the bytes in between kept under watch.
#pragma once
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "tropical_gemm/matmul.h"
#include "visit.h"

namespace tropical::testing {

// A fixed sequence for a seed, the same on every platform (the standard distributions are not).
class Rng {
 public:
  explicit Rng(uint64_t seed) : engine_(seed) {}
  uint64_t bits() { return engine_(); }
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  bool one_in(int64_t n) { return below(n) == 0; }
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  template <class List>
  auto pick(const List& list) {
    return *(std::begin(list) + below(static_cast<int64_t>(std::size(list))));
  }

 private:
  std::mt19937_64 engine_;
};

enum class Layout { row_major, column_major, step2, reversed, padded, shuffled, broadcast };
inline constexpr Layout kOutputLayouts[] = {Layout::row_major, Layout::column_major, Layout::step2,
                                            Layout::reversed,  Layout::padded,       Layout::shuffled};
inline constexpr Layout kInputLayouts[] = {Layout::row_major, Layout::column_major, Layout::step2,    Layout::reversed,
                                           Layout::padded,    Layout::shuffled,     Layout::broadcast};

using Shape = std::vector<int64_t>;

inline int64_t element_count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

class HostTensor {
 public:
  HostTensor(DType dtype, Shape shape, Layout layout, Rng& rng) : shape_(std::move(shape)) {
    visit_dtype(dtype, [&]<class T>() { dtype_ = dlpack_dtype<T>(); });
    const size_t rank = shape_.size();
    std::vector<size_t> order(rank);  // axes, the innermost first
    std::iota(order.rbegin(), order.rend(), size_t{0});
    if (layout == Layout::column_major) std::reverse(order.begin(), order.end());
    if (layout == Layout::shuffled)
      for (size_t i = rank; i > 1; --i) std::swap(order[i - 1], order[static_cast<size_t>(rng.below(int64_t(i)))]);
    strides_.resize(rank);
    int64_t step = 1, first = 0;
    for (const size_t axis : order) {
      if (layout == Layout::broadcast && rng.one_in(2)) continue;  // stride 0
      if (layout == Layout::step2) step *= 2;
      const bool backwards = layout == Layout::reversed || (layout == Layout::shuffled && rng.one_in(2));
      const int64_t size = std::max<int64_t>(shape_[axis], 1);
      strides_[axis] = backwards ? -step : step;
      if (backwards) first += step * (size - 1);
      step *= size;
      if (layout == Layout::padded) step += 3;
    }
    // A size-1 axis may carry any stride, and producers do export such.
    for (size_t d = 0; d < rank; ++d)
      if (shape_[d] == 1 && rng.one_in(4)) strides_[d] = rng.one_in(2) ? 1 : 12345;
    const int64_t lead = rng.below(5);  // not always aligned to a vector
    offset_ = kGuard / item() * item() + lead * item();
    const size_t bytes = static_cast<size_t>(step * item() + 2 * kGuard + 5 * item());
    storage_.assign(bytes / sizeof(uint64_t) + 1, 0x5a5a5a5a5a5a5a5aULL);
    offset_ += first * item();
  }

  const Shape& shape() const { return shape_; }
  int64_t count() const { return element_count(shape_); }
  DLTensor dlpack() const {
    DLTensor t{};
    t.data = const_cast<char*>(reinterpret_cast<const char*>(storage_.data()));
    t.byte_offset = static_cast<uint64_t>(offset_);
    t.device = {kDLCPU, 0};
    t.ndim = static_cast<int32_t>(shape_.size());
    t.dtype = dtype_;
    t.shape = const_cast<int64_t*>(shape_.data());
    t.strides = const_cast<int64_t*>(strides_.data());
    return t;
  }
  // Of element number `index` in the logical row-major order, in elements from the first one.
  int64_t offset(int64_t index) const {
    int64_t o = 0;
    for (size_t d = shape_.size(); d-- > 0; index /= shape_[d]) o += index % shape_[d] * strides_[d];
    return o;
  }
  template <class T>
  T& at(int64_t index) {
    return reinterpret_cast<T*>(reinterpret_cast<char*>(storage_.data()) + offset_)[offset(index)];
  }
  // All memory: elements, gaps and guards.
  std::vector<uint64_t>& storage() { return storage_; }
  // Elements, gaps and guards: equality means that nothing else was written either.
  bool same_bytes(const HostTensor& other) const { return storage_ == other.storage_; }

 private:
  static constexpr int64_t kGuard = 128;
  int64_t item() const { return dtype_.bits / 8; }

  Shape shape_, strides_;
  DLDataType dtype_{};
  int64_t offset_ = 0;
  std::vector<uint64_t> storage_;
};

}  // namespace tropical::testing
