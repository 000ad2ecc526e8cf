// A driver's library that says it is of CUDA 11.4, for the text that users of such a driver meet. Needs no GPU.
#include <string.h>

#define API __attribute__((visibility("default")))

API int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}

API int cuInit(unsigned flags) { return (int)flags; }

API int cuGetProcAddress(const char* name, void** entry, int version, unsigned long long flags) {
  (void)version, (void)flags;
  *entry = strcmp(name, "cuDriverGetVersion") == 0 ? (void*)cuDriverGetVersion : NULL;
  return *entry ? 0 : 500;  // CUDA_ERROR_NOT_FOUND
}
