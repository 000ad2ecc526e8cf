// The ordinary batched product of cuBLAS, which torch.bmm calls, from wherever the loader finds the library: nothing is
// linked to it.
#pragma once
#include <dlfcn.h>

#include "calls.cuh"

namespace tropical::cuda {

class Bmm {
 public:
  Bmm() {
    void* library = nullptr;
    for (const char* name : {"libcublas.so", "libcublas.so.13", "libcublas.so.12"})
      if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      std::printf("no cuBLAS found (LD_LIBRARY_PATH): batches are not compared\n");
      return;
    }
    using Create = int (*)(void**);
    using SetStream = int (*)(void*, cudaStream_t);
    const auto create = reinterpret_cast<Create>(dlsym(library, "cublasCreate_v2"));
    const auto set_stream = reinterpret_cast<SetStream>(dlsym(library, "cublasSetStream_v2"));
    product_ = reinterpret_cast<Product>(dlsym(library, "cublasSgemmStridedBatched"));
    if (!create || !set_stream || !product_ || create(&handle_) != 0 || set_stream(handle_, context.stream) != 0)
      product_ = nullptr;
  }

  // Seconds of `count` products of n x n matrices of f32; 0 without the library.
  double seconds(int64_t count, int n) const {
    if (!product_) return 0;
    const size_t bytes = static_cast<size_t>(count) * n * n * sizeof(float);
    const Memory a(bytes), b(bytes), c(bytes);
    make<float>({a.data, n, 1, {}}, Data::normal, count * n, n, true, false);
    make<float>({b.data, n, 1, {}}, Data::normal, count * n, n, false, false);
    const float one = 1, zero = 0;
    const long long step = static_cast<long long>(n) * n;
    const auto call = [&] {
      // Column-major: the transposed product of row-major operands.
      const int status = product_(handle_, 0, 0, n, n, n, &one, static_cast<const float*>(b.data), n, step,
                                  static_cast<const float*>(a.data), n, step, &zero, static_cast<float*>(c.data), n,
                                  step, static_cast<int>(count));
      if (status != 0) std::printf("cuBLAS: %d\n", status), std::exit(2);
    };
    call();  // outside of a capture first
    check(cudaStreamSynchronize(context.stream), "synchronize");
    return seconds_of(call, true);
  }

 private:
  using Product = int (*)(void*, int, int, int, int, int, const float*, const float*, int, long long, const float*, int,
                          long long, const float*, float*, int, long long, int);
  Product product_ = nullptr;
  void* handle_ = nullptr;
};

}  // namespace tropical::cuda
