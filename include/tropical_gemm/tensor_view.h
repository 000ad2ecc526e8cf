// Typed, non-owning views of host memory with arbitrary strides, and their run-time form (a DLTensor).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "tropical_gemm/dlpack.h"
#include "tropical_gemm/dtype.h"

namespace tropical {

// The DLPack form of an element type. Bool is one byte.
template <class T>
constexpr DLDataType dlpack_dtype() {
  using U = std::remove_const_t<T>;
  const auto code = std::is_same_v<U, bool>       ? kDLBool
                    : std::is_same_v<U, bfloat16> ? kDLBfloat
                    : is_float_v<U>               ? kDLFloat
                                                  : kDLInt;
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * sizeof(U)), 1};
}

// A view of Rank dimensions. Strides count elements and may be zero or negative; `data` is element (0, ..., 0).
template <class T, int Rank>
struct TensorView {
  T* data = nullptr;
  std::array<int64_t, Rank> shape{};
  std::array<int64_t, Rank> strides{};

  constexpr TensorView() = default;
  constexpr TensorView(T* d, std::array<int64_t, Rank> sh, std::array<int64_t, Rank> st)
      : data(d), shape(sh), strides(st) {}
  // Row-major and compact.
  constexpr TensorView(T* d, std::array<int64_t, Rank> sh) : data(d), shape(sh) {
    int64_t step = 1;
    for (int i = Rank - 1; i >= 0; --i) {
      strides[static_cast<size_t>(i)] = step;
      step *= shape[static_cast<size_t>(i)];
    }
  }
  // A view of mutable elements is one of constant elements too.
  constexpr operator TensorView<const T, Rank>() const requires(!std::is_const_v<T>) { return {data, shape, strides}; }

  // The last two axes exchanged.
  constexpr TensorView transposed() const requires(Rank >= 2) {
    TensorView t = *this;
    std::swap(t.shape[Rank - 1], t.shape[Rank - 2]);
    std::swap(t.strides[Rank - 1], t.strides[Rank - 2]);
    return t;
  }

  // Valid while this view lives: the result points into it.
  DLTensor dlpack() const {
    DLTensor t{};
    t.data = const_cast<std::remove_const_t<T>*>(data);
    t.device = {kDLCPU, 0};
    t.ndim = Rank;
    t.dtype = dlpack_dtype<T>();
    t.shape = const_cast<int64_t*>(shape.data());
    t.strides = const_cast<int64_t*>(strides.data());
    return t;
  }
};

template <class T>
using MatrixView = TensorView<T, 2>;

}  // namespace tropical
