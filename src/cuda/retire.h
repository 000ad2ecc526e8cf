// Memory whose users are not known any more: given back once all work that the device has now is done.
#pragma once
#include <cuda_runtime.h>

namespace tropical::cuda {

struct Event {
  cudaEvent_t event = nullptr;
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
};

void retire(void* memory, int device);

}  // namespace tropical::cuda
