// Seeded operands of one product, the calls to time on them, and a check of the results.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "cpu/kernels.h"
#include "tropical_gemm/matmul.h"

namespace tropical::bench {

enum class Special { none, infinity, nan };  // infinity: the semiring's, which makes no NaN

// Uniform in [-range, range), integers included; a share of the elements, at least one, is special.
struct Fill {
  double range = 1;
  Special special = Special::none;
  double share = 0;
  double (*draw)(std::mt19937_64&) = nullptr;  // of floats, instead of uniform numbers
};

struct ProblemSpec {
  Semiring semiring = Semiring::max_plus;
  DType dtype = DType::f32;
  int64_t m = 0, k = 0, n = 0;
  int64_t batch = 1;
  Fill fill = {};
};

// "f32", "boolean".
std::string short_name(DType dtype);
// "f32/max_plus/1024x64x1024" (M x K x N), with "16x" in front of a batch of 16.
std::string spec_name(const ProblemSpec& spec);

// A compact tensor; without a batch it is a matrix. Aligned to a cache line, as NumPy and torch do for large arrays.
class HostTensor {
 public:
  HostTensor(DType dtype, int64_t batch, int64_t rows, int64_t cols);
  HostTensor(const HostTensor&) = delete;
  HostTensor& operator=(const HostTensor&) = delete;

  const DLTensor& view() const { return view_; }
  template <class T>
  T* data() const {
    return static_cast<T*>(view_.data);
  }
  int64_t size() const { return shape_[0] * shape_[1] * shape_[2]; }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::array<int64_t, 3> shape_;
  std::unique_ptr<void, Free> memory_;
  DLTensor view_{};
};

class Problem {
 public:
  explicit Problem(const ProblemSpec& spec);

  void values(int threads = 1);
  void argmax(int threads = 1);
  void backward();  // both gradients, through the indices of the last argmax()
  bool scan();      // whether all is finite: the pass that looks for infinities and NaN, alone, over A and B (no batch)

  // Compare sampled elements of the last result with plain loops; throw std::runtime_error if one differs.
  void check_values() const { check(false); }
  void check_argmax() const { check(true); }
  // Throws if the pass over clean operands found something.
  void check_scan();

  double pairs() const;

 private:
  void check(bool with_argmax) const;

  ProblemSpec spec_;
  HostTensor a_, b_, c_;
  std::unique_ptr<HostTensor> argmax_, grad_a_, grad_b_;  // made where they are used
  const cpu::Kernels* kernels_;
};

}  // namespace tropical::bench
