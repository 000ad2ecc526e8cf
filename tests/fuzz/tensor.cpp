#include "tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "lowering.h"
#include "tropical_gemm/tensor_view.h"
#include "visit.h"

namespace tropical::fuzz {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min(), kHighest = std::numeric_limits<int64_t>::max();
constexpr int64_t kSizes[] = {0,         1,         2,         3,         -1,        kLowest,         kHighest,
                              1LL << 31, 1LL << 32, 1LL << 40, 1LL << 62, 1LL << 61, (1LL << 31) - 1, 33};
constexpr int64_t kStrides[] = {0,           1,         -1,        2,         -2,        kLowest,        kHighest,
                                kLowest + 1, 1LL << 31, 1LL << 32, 1LL << 61, 1LL << 62, 1LL << 63 >> 1, 7};
constexpr int32_t kDims[] = {
    0, 1, 2, 3, 4, 5, -1, 34, 35, 64, 65, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
constexpr int64_t kMostBytes = 1 << 16;
// A vector of shape or strides is no longer than this, whatever ndim says.
constexpr int32_t kMostDims = 70;

uint64_t mixed(uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  uint64_t x = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

template <class T>
Stored<T> number(uint64_t x, int kind) {
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<Stored<T>>(kind == 0 ? x % 2 : x % 3 * 85);
  } else {
    T any;
    std::memcpy(&any, &x, sizeof any);
    if (kind == 1) return any;
    const int64_t small = static_cast<int64_t>(x % 7) - 3;
    if constexpr (is_float_v<T>) {
      using Limits = std::numeric_limits<wide_t<T>>;
      const wide_t<T> values[] = {0, -0.0f, 1.5f, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), 1e-40f};
      return narrow<T>(kind == 0 ? static_cast<wide_t<T>>(small) : values[x % 7]);
    } else {
      const T values[] = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), 0, 1, -1, any};
      return kind == 0 ? static_cast<T>(small) : values[x % 6];
    }
  }
}

}  // namespace

bool next(std::vector<int64_t>& index, const int64_t* shape) {
  for (size_t d = index.size(); d-- > 0; index[d] = 0)
    if (++index[d] < shape[d]) return true;
  return false;
}

Tensor::Tensor(Bytes& bytes, DType dtype, std::vector<int64_t> shape, const Tensor* other) : shape_(std::move(shape)) {
  tensor_.ndim = static_cast<int32_t>(shape_.size());
  tensor_.device = {kDLCPU, 0};
  visit_dtype(dtype, [&]<class T>() { tensor_.dtype = dlpack_dtype<T>(); });
  draw_strides(bytes);
  const int distortions = bytes.one_in(8) ? 1 + bytes.one_in(4) : 0;
  for (int i = 0; i < distortions; ++i) distort(bytes);
  tensor_.shape = shape_.empty() ? nullptr : shape_.data();
  tensor_.strides = strides_.empty() ? nullptr : strides_.data();
  if (distortions && bytes.one_in(16)) tensor_.shape = nullptr;
  provide(bytes, other);
}

void Tensor::draw_strides(Bytes& bytes) {
  strides_.clear();
  const int kind = bytes.below(6);
  if (kind == 0) return;  // none: row-major
  const int n = static_cast<int>(shape_.size());
  strides_.resize(shape_.size());
  std::vector<int> order(shape_.size());
  for (int d = 0; d < n; ++d) order[static_cast<size_t>(d)] = kind == 2 ? d : n - 1 - d;
  if (kind == 3 && n > 1) std::swap(order[0], order[1]);
  int64_t step = kind == 4 ? 2 : 1;
  for (const int d : order) {
    const size_t at = static_cast<size_t>(d);
    strides_[at] = step;
    if (kind >= 3 && bytes.one_in(3)) strides_[at] = -step;
    if (kind == 5) {
      strides_[at] = bytes.below(32) - 8;
      continue;
    }
    const int64_t size = std::clamp<int64_t>(shape_[at], 1, 64);
    step = std::min<int64_t>(step * size, 1 << 20);
  }
}

void Tensor::distort(Bytes& bytes) {
  const auto any_axis = [&](std::vector<int64_t>& list) -> int64_t* {
    return list.empty() ? nullptr : &list[static_cast<size_t>(bytes.below(static_cast<int>(list.size())))];
  };
  switch (bytes.below(8)) {
    case 0: {
      tensor_.ndim = bytes.pick(kDims);
      const size_t dims = tensor_.ndim > kMostDims ? 1 : static_cast<size_t>(std::max(tensor_.ndim, 0));
      shape_.resize(dims, 1);
      if (!strides_.empty() || bytes.one_in(2)) strides_.resize(dims, 1);
      shape_.shrink_to_fit(), strides_.shrink_to_fit();
      break;
    }
    case 1:
      if (int64_t* size = any_axis(shape_)) *size = bytes.pick(kSizes);
      break;
    case 2:
      if (int64_t* stride = any_axis(strides_)) *stride = bytes.pick(kStrides);
      break;
    case 3:
      if (int64_t* stride = any_axis(strides_)) *stride = static_cast<int64_t>(bytes.word());
      break;
    case 4:
      tensor_.dtype = {bytes.byte(), bytes.byte(), static_cast<uint16_t>(bytes.below(3))};
      break;
    case 5:
      tensor_.dtype.code = static_cast<uint8_t>(bytes.below(8));
      tensor_.dtype.bits = static_cast<uint8_t>(8 << bytes.below(5));
      break;
    case 6:
      tensor_.device = {static_cast<DLDeviceType>(bytes.below(16)), bytes.below(3) - 1};
      break;
    default:
      if (int64_t* size = any_axis(shape_)) *size = bytes.below(5);
  }
}

int64_t Tensor::stride(int axis) const {
  if (tensor_.strides) return tensor_.strides[axis];
  int128 step = 1;
  for (int d = tensor_.ndim - 1; d > axis; --d)
    step = std::min<int128>(step * shape_[static_cast<size_t>(d)], kHighest);
  return static_cast<int64_t>(step);
}

bool Tensor::empty() const {
  if (!tensor_.shape || tensor_.ndim > kMostDims) return false;
  return std::find(shape_.begin(), shape_.end(), 0) != shape_.end();
}

int128 Tensor::count() const {
  int128 n = 1;
  for (const int64_t size : shape_) n = std::min<int128>(n * std::max<int64_t>(size, 1), int128{1} << 60);
  return n;
}

void Tensor::provide(Bytes& bytes, const Tensor* other) {
  static char somewhere[64];
  const int form = bytes.below(48);
  const uint64_t seed = bytes.byte();
  const int kind = bytes.below(3);
  tensor_.byte_offset = form == 1 ? bytes.word() : static_cast<uint64_t>(form == 2 ? 8 * bytes.below(9) : 0);
  tensor_.data = somewhere;
  const bool possible = tensor_.ndim >= 0 && tensor_.ndim <= kMostDims && (tensor_.shape || tensor_.ndim == 0) &&
                        std::all_of(shape_.begin(), shape_.end(), [](int64_t size) { return size >= 0; });
  if (!possible) return;
  if (empty() || form == 3) {
    tensor_.data = form % 2 ? nullptr : somewhere;
    backed_ = true;  // nothing may be read
    return;
  }
  int128 low = 0, high = 0;
  for (int d = 0; d < tensor_.ndim; ++d) {
    constexpr int128 kFar = int128{1} << 80;
    const int128 steps = int128{stride(d)} * (shape_[static_cast<size_t>(d)] - 1);
    const int128 span = std::clamp(steps, -kFar, kFar) * item();
    (span < 0 ? low : high) += span;
  }
  absurd_ = high - low > int128{1} << 61;
  const int128 span = high - low + item();
  if (span > kMostBytes || item() == 0) return;
  const size_t shift = form == 4 ? 1 : 0;  // not aligned
  size_ = static_cast<size_t>(span) + shift;
  backed_ = true;
  if (other && other->size_ >= size_ && bytes.one_in(6)) {
    const size_t places = other->size_ - size_ + 1;
    memory_ = other->memory_ + (static_cast<size_t>(bytes.byte()) * static_cast<size_t>(item())) % places;
  } else {
    owned_ = std::make_unique<char[]>(size_);
    memory_ = owned_.get();
    fill(seed, kind);
  }
  before_.assign(memory_, memory_ + size_);
  const uintptr_t first =
      reinterpret_cast<uintptr_t>(memory_) + shift - static_cast<uintptr_t>(static_cast<int64_t>(low));
  tensor_.data = reinterpret_cast<void*>(first - tensor_.byte_offset);
}

void Tensor::fill(uint64_t seed, int kind) {
  const auto fill_as = [&]<class T>() {
    for (size_t at = 0; at + sizeof(T) <= size_; at += sizeof(T)) {
      const Stored<T> x = number<T>(mixed(seed), kind);
      std::memcpy(memory_ + at, &x, sizeof x);
    }
  };
  bool known = false;
  const auto look = [&]<class T>() {
    const DLDataType d = dlpack_dtype<T>();
    if (!known && d.code == tensor_.dtype.code && d.bits == tensor_.dtype.bits)
      fill_as.template operator()<T>(), known = true;
  };
  [&]<class... T>(TypeList<T...>) { (look.template operator()<T>(), ...); }(AllTypes{});
}

char* Tensor::entry(const int64_t* index) const {
  int64_t offset = 0;
  for (int d = 0; d < tensor_.ndim; ++d) offset += index[d] * (shape_[static_cast<size_t>(d)] > 1 ? stride(d) : 0);
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(tensor_.data) + tensor_.byte_offset +
                                 static_cast<uintptr_t>(offset * item()));
}

bool Tensor::same() const { return size_ == 0 || std::memcmp(memory_, before_.data(), size_) == 0; }

bool Tensor::only_entries_changed() const {
  if (size_ == 0) return true;
  std::vector<char> now(memory_, memory_ + size_);
  std::vector<int64_t> index(shape_.size());
  const size_t bytes = static_cast<size_t>(item());
  do {
    const auto at = static_cast<size_t>(entry(index.data()) - memory_);
    std::copy_n(before_.data() + at, bytes, now.data() + at);
  } while (next(index, shape_.data()));
  return now == before_;
}

}  // namespace tropical::fuzz
