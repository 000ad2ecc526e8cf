// A tensor's description as a fuzzer wants it, and memory that is exactly as large as what it describes.
#pragma once
#include <memory>
#include <vector>

#include "bytes.h"
#include "tropical_gemm/dlpack.h"
#include "tropical_gemm/dtype.h"

namespace tropical::fuzz {

__extension__ using int128 = __int128;

class Tensor {
 public:
  // Mostly of this dtype and shape, with strides of any kind; now and then something else instead.
  // `other`: nullptr, or a tensor whose memory may serve this one too.
  Tensor(Bytes& bytes, DType dtype, std::vector<int64_t> shape, const Tensor* other = nullptr);
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  const DLTensor& dlpack() const { return tensor_; }
  bool empty() const;
  // All that it describes is there, or it describes nothing.
  bool backed() const { return backed_; }
  // It describes more than an address space holds, and nobody may believe it.
  bool absurd() const { return absurd_; }
  // It lies in another one's memory.
  bool borrows() const { return size_ != 0 && !owned_; }
  // The number of entries, at most a limit that no test reaches.
  int128 count() const;

  // Entry at an index of `ndim` numbers: as it is, and as it was before the call.
  char* entry(const int64_t* index) const;
  const char* entry_before(const int64_t* index) const { return before_.data() + (entry(index) - memory_); }

  // Whether its memory is as it was, or is so but for its own entries.
  bool same() const;
  bool only_entries_changed() const;

 private:
  void distort(Bytes& bytes);
  void draw_strides(Bytes& bytes);
  void provide(Bytes& bytes, const Tensor* other);
  void fill(uint64_t seed, int kind);
  int64_t stride(int axis) const;
  int64_t item() const { return tensor_.dtype.bits * tensor_.dtype.lanes / 8; }

  DLTensor tensor_{};
  std::vector<int64_t> shape_, strides_;  // exactly `ndim` numbers where it is a possible one
  std::unique_ptr<char[]> owned_;
  char* memory_ = nullptr;
  size_t size_ = 0;
  std::vector<char> before_;
  bool backed_ = false, absurd_ = false;
};

// The index after this one in a shape; false at the end.
bool next(std::vector<int64_t>& index, const int64_t* shape);

}  // namespace tropical::fuzz
