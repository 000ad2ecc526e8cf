// driver_check LIBRARY TEXT: whether the CUDA library says TEXT where the driver that it meets cannot serve it.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "cuda/backend.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  const auto get =
      library ? reinterpret_cast<tropical::cuda::GetBackend>(dlsym(library, tropical::cuda::kEntrySymbol)) : nullptr;
  if (!get) {
    std::printf("%s cannot be opened\n", argv[1]);
    return 2;
  }
  tropical::cuda::Status status;
  const int count = get()->device_count(&status);
  std::printf("%d devices: %s\n", count, status.message);
  return count == 0 && std::strstr(status.message, argv[2]) ? 0 : 1;
}
