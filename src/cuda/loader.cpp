#include "loader.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tropical_gemm/cuda.h"

namespace tropical {
namespace cuda {
namespace {

constexpr const char* kLibrary = "libtropical_gemm_cuda.so";
constexpr const char* kVariable = "TROPICAL_GEMM_CUDA_LIBRARY";

std::filesystem::path library_path() {
  if (const char* named = std::getenv(kVariable); named && *named) return named;
  Dl_info here{};
  if (!dladdr(reinterpret_cast<const void*>(&library_path), &here) || !here.dli_fname) return kLibrary;
  return std::filesystem::absolute(here.dli_fname).parent_path() / kLibrary;
}

// Either a table, or the reason that there is none.
struct Opened {
  const Backend* table = nullptr;
  std::string problem;
};

Opened open() {
  const std::filesystem::path path = library_path();
  if (std::error_code ignored; !std::filesystem::exists(path, ignored))
    return {nullptr, "this build has no CUDA backend: there is no " + path.string() +
                         "; pass arrays in host memory, or install a build with CUDA (docs/python.md, GPUs)"};
  // Never closed: threads may be inside it for as long as the process runs.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    return {nullptr, "the CUDA backend cannot be opened: " + std::string(reason ? reason : path.c_str())};
  }
  const auto get = reinterpret_cast<GetBackend>(dlsym(library, kEntrySymbol));
  if (!get) return {nullptr, path.string() + " is no CUDA backend: it has no symbol " + kEntrySymbol};
  const Backend* table = get();
  if (table->abi != kAbi)
    return {nullptr, path.string() + " is of another build: its interface has version " + std::to_string(table->abi) +
                         ", this library needs " + std::to_string(kAbi) + "; install both from one build"};
  return {table, ""};
}

const Opened& opened() {
  static const Opened once = open();
  return once;
}

}  // namespace

const Backend& backend() {
  const Opened& library = opened();
  if (!library.table) throw Error(ErrorCode::unsupported, library.problem);
  return *library.table;
}

}  // namespace cuda

CudaInfo cuda_info() {
  const cuda::Opened& library = cuda::opened();
  if (!library.table) return {false, "", {}, library.problem};
  CudaInfo info{true, library.table->architectures, {}, ""};
  cuda::Status status;
  const int count = library.table->device_count(&status);
  if (status.code != 0)
    info.problem = status.message;
  else if (count == 0)
    info.problem = "there is no CUDA device";
  for (int device = 0; device < count && status.code == 0; ++device) {
    cuda::DeviceInfo d;
    cuda::call(library.table->device_info, device, &d);
    info.devices.push_back({d.name, d.major, d.minor, d.multiprocessors, d.memory, d.supported});
  }
  return info;
}

void* cuda_allocate(size_t bytes, int device, void* stream) {
  const cuda::Queue queue{device, stream};
  return cuda::call(cuda::backend().allocate, bytes, &queue);
}

void cuda_release(void* memory, int device, void* stream) {
  const cuda::Queue queue{device, stream};
  cuda::call(cuda::backend().release, memory, &queue);
}

void cuda_order(int device, void* first, void* second) {
  const cuda::Queue before{device, first}, after{device, second};
  cuda::call(cuda::backend().order, &before, &after);
}

void* cuda_mark(int device, void* stream) {
  const cuda::Queue queue{device, stream};
  return cuda::call(cuda::backend().mark, &queue);
}

void cuda_wait(void* mark, int device, void* stream) {
  const cuda::Queue queue{device, stream};
  cuda::call(cuda::backend().wait, mark, &queue);
}

void cuda_unmark(void* mark) { cuda::backend().unmark(mark); }

void cuda_retire(void* memory, int device) { cuda::call(cuda::backend().retire, memory, device); }

void cuda_copy(void* to, const void* from, size_t bytes, int device, void* stream) {
  const cuda::Queue queue{device, stream};
  cuda::call(cuda::backend().copy, to, from, bytes, &queue);
}

void cuda_when_done(void (*done)(void*), void* context, int device, void* stream) {
  const cuda::Queue queue{device, stream};
  cuda::call(cuda::backend().when_done, done, context, &queue);
}

}  // namespace tropical
