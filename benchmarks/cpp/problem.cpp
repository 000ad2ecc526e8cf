#include "problem.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <stdexcept>

#include "visit.h"

namespace tropical::bench {
namespace {

constexpr size_t kAlignment = 64;
constexpr uint64_t kSeed = 20240607;
constexpr int kSamples = 16;

template <class T>
T number(const Fill& fill, std::mt19937_64& random) {
  const double range = fill.range;
  if constexpr (std::is_same_v<T, bool>) {
    return (random() & 1) != 0;
  } else if constexpr (is_float_v<T>) {
    const double x = fill.draw ? fill.draw(random) : std::uniform_real_distribution<double>(-range, range)(random);
    return narrow<T>(static_cast<wide_t<T>>(x));
  } else {
    const auto limit = static_cast<int64_t>(range);
    return static_cast<T>(std::uniform_int_distribution<int64_t>(-limit, limit - 1)(random));
  }
}

template <class S, class T>
T special_value(Special special) {
  if constexpr (is_float_v<T>)
    if (special == Special::nan) return narrow<T>(std::numeric_limits<wide_t<T>>::quiet_NaN());
  return S::template zero<T>();
}

void fill(const HostTensor& tensor, const ProblemSpec& spec, uint64_t seed) {
  std::mt19937_64 random(seed);
  visit(spec.semiring, spec.dtype, [&]<class S, class T>() {
    T* data = tensor.data<T>();
    for (int64_t i = 0; i < tensor.size(); ++i) data[i] = number<T>(spec.fill, random);
    if (spec.fill.special == Special::none) return;
    const auto count = std::max<int64_t>(1, std::llround(spec.fill.share * static_cast<double>(tensor.size())));
    std::uniform_int_distribution<int64_t> place(0, tensor.size() - 1);
    for (int64_t i = 0; i < count; ++i) data[place(random)] = special_value<S, T>(spec.fill.special);
  });
}

template <class T>
bool same(T x, T y) {
  return std::memcmp(&x, &y, sizeof(T)) == 0;
}

// One element by definition.
template <class S, class T>
struct Expected {
  T value;
  int32_t index = -1;

  Expected(const T* a_row, const T* b_col, int64_t k, int64_t n) : value(S::template worst<T>()) {
    for (int64_t q = 0; q < k; ++q) {
      const T candidate = S::mul(a_row[q], b_col[q * n]);
      if (S::better(candidate, value) || (is_nan(candidate) && !is_nan(value))) index = static_cast<int32_t>(q);
      value = detail::pick<S>(value, candidate);
    }
    value = canonical(value);
  }
};

}  // namespace

std::string short_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i16:
      return "i16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::boolean:
      return "bool";
  }
  return "";
}

std::string spec_name(const ProblemSpec& s) {
  return short_name(s.dtype) + "/" + semiring_name(s.semiring) + "/" +
         (s.batch > 1 ? std::to_string(s.batch) + "x" : "") + std::to_string(s.m) + "x" + std::to_string(s.k) + "x" +
         std::to_string(s.n);
}

HostTensor::HostTensor(DType dtype, int64_t batch, int64_t rows, int64_t cols) : shape_{batch, rows, cols} {
  view_.device = {kDLCPU, 0};
  visit_dtype(dtype, [&]<class T>() { view_.dtype = dlpack_dtype<T>(); });
  const auto bytes = static_cast<size_t>(size()) * view_.dtype.bits / 8;
  memory_.reset(std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
  if (!memory_) throw std::bad_alloc();
  std::memset(memory_.get(), 0, bytes);
  view_.data = memory_.get();
  view_.ndim = batch > 1 ? 3 : 2;
  view_.shape = shape_.data() + (3 - view_.ndim);
}

void HostTensor::Free::operator()(void* p) const { std::free(p); }

Problem::Problem(const ProblemSpec& spec)
    : spec_(spec),
      a_(spec.dtype, spec.batch, spec.m, spec.k),
      b_(spec.dtype, spec.batch, spec.k, spec.n),
      c_(spec.dtype, spec.batch, spec.m, spec.n),
      kernels_(cpu::find_kernels(spec.semiring, spec.dtype, Path::plain, false)) {
  fill(a_, spec, kSeed);
  fill(b_, spec, kSeed + 1);
}

double Problem::pairs() const {
  return static_cast<double>(spec_.batch) * static_cast<double>(spec_.m) * static_cast<double>(spec_.k) *
         static_cast<double>(spec_.n);
}

void Problem::values(int threads) {
  MatmulOptions options;
  options.threads = threads;
  matmul(spec_.semiring, a_.view(), b_.view(), c_.view(), nullptr, options);
}

void Problem::argmax(int threads) {
  if (!argmax_) argmax_ = std::make_unique<HostTensor>(DType::i32, spec_.batch, spec_.m, spec_.n);
  MatmulOptions options;
  options.threads = threads;
  matmul(spec_.semiring, a_.view(), b_.view(), c_.view(), &argmax_->view(), options);
}

void Problem::backward() {
  if (!grad_a_) {
    grad_a_ = std::make_unique<HostTensor>(spec_.dtype, spec_.batch, spec_.m, spec_.k);
    grad_b_ = std::make_unique<HostTensor>(spec_.dtype, spec_.batch, spec_.k, spec_.n);
  }
  // C serves as its own gradient: any numbers do.
  matmul_backward(spec_.semiring, c_.view(), argmax_->view(), a_.view(), b_.view(), &grad_a_->view(), &grad_b_->view(),
                  1);
}

bool Problem::scan() {
  const bool a = kernels_->finite({a_.view().data, spec_.k, 1, spec_.m, spec_.k});
  const bool b = kernels_->finite({b_.view().data, spec_.n, 1, spec_.k, spec_.n});
  return a && b;
}

void Problem::check_scan() {
  if (!scan()) throw std::runtime_error(spec_name(spec_) + ": the scan found infinities or NaN in clean operands");
}

void Problem::check(bool with_argmax) const {
  std::mt19937_64 random(kSeed);
  std::uniform_int_distribution<int64_t> place(0, c_.size() - 1);
  visit(spec_.semiring, spec_.dtype, [&]<class S, class T>() {
    for (int sample = 0; sample < kSamples; ++sample) {
      const int64_t at = sample == 0 ? c_.size() - 1 : place(random);
      const int64_t j = at % spec_.n, row = at / spec_.n, member = row / spec_.m;
      const Expected<S, T> expected(a_.data<T>() + row * spec_.k, b_.data<T>() + member * spec_.k * spec_.n + j,
                                    spec_.k, spec_.n);
      if (!same(c_.data<T>()[at], expected.value) || (with_argmax && argmax_->data<int32_t>()[at] != expected.index))
        throw std::runtime_error(spec_name(spec_) + ": wrong result at element " + std::to_string(at));
    }
  });
}

}  // namespace tropical::bench
